"""The matrix as a page of Markdown that escapes what comes from data files, as lines for a terminal, and as data."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from runner.base.canonical import refuse_special, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.figures import p_text
from runner.base.given_files import display, printable
from runner.base.places import DRIVER
from runner.base.records import Interval
from runner.base.store import disk_errors
from runner.base.terminal import Signs
from runner.eval_set.catalog import EXTERNAL_BASELINE
from runner.tools.markdown import escaped, table
from runner.tools.matrix.matrix import PLACES, TESTED, Average, Beside, DatasetMatrix, Matrix, make_matrix
from runner.tools.matrix.runs import MatrixRun, Measure, Source

SHOWN: dict[Measure, str] = {"ndcg@10": "nDCG@10", "recall@100": "Recall@100", "mrr@10": "MRR@10"}
"""The measures that the page has, by their names on it."""

RUNS = "matrix/runs"
PUBLISHED = "matrix/published.yaml"
"""Where the page's links lead, seen from the page."""

_SIGNS = Signs()
_BASELINE = f"`{EXTERNAL_BASELINE}`"

_HEAD = f"""\
# Matrix of public collections

<!-- Written by `{DRIVER} matrix`; `matrix --check` finds an edited page. -->

What systems of this repository score on public collections with published judgments. The page claims three things:
what each system scored here, with every query's score in a linked file; whether that agrees with published values,
inside tolerances that stand beside the values in [{PUBLISHED}]({PUBLISHED}); and which systems are told apart from
{_BASELINE} on the same queries. A run that does not pass the null gate is shown, and neither ranked nor tested. Nothing
is claimed of other collections or of legislative text, and of no published system that it is beaten: a published mean
comes without its queries' scores.
"""

_READING = f"""\
## How to read it

- An interval in brackets is of 95 %: a percentile bootstrap over queries beside a score, the inverted sign-flip test
  beside a difference. `all` holds for all systems of the dataset at once. A system is "above" or "below" if that
  interval does not reach 0, else "not told apart". A further system can only widen these intervals and raise these p.
- `p adjusted` is max-T over the systems of the dataset; [statistics.md](statistics.md) has the test.
- A difference to a published value is rounded to {PLACES} places. "agrees" and "differs" need a tolerance; without one
  the value is only shown.
- A system's name links to its run: collection digests, encoder or BM25 settings, scores by query id.
"""

_USE = f"""\
## Check a number

    {DRIVER} compare {{run}} --paired {{baseline}}
    {DRIVER} matrix --check

The first reads two runs and tests one against the other, from the scores alone; the second makes this page again from
all runs, whose means and intervals it computes anew, and compares the bytes. To get the scores themselves again, use
the commands below a dataset. An exported TREC run (`trec/` beside results.json) can be scored by any other tool.

## Add a system or a dataset

    {DRIVER} --source=beir --corpus-path FOLDER
    {DRIVER} matrix add .work/beir/NAME/v1/results.json && {DRIVER} matrix

FOLDER has the layout of BEIR, its name is the dataset's. Further systems are lines of the plan that the first command
writes, or `--trec-run FILE` for a ranking made elsewhere. Published values are rows of [{PUBLISHED}]({PUBLISHED}).
"""


def matrix_page(matrix: Matrix) -> bytes:
    """The page; the same bytes for the same matrix."""
    blocks = [_HEAD, _READING]
    for dataset in matrix.datasets:
        blocks += _dataset(dataset)
    blocks += [*_together(matrix), _use(matrix)]
    return "\n".join(blocks).encode()


def write_matrix(path: Path, *, check: bool) -> Matrix:
    """The matrix of the folder matrix/ beside the page, which is written or, with `check`, held to it."""
    refuse_special(path)
    found = make_matrix(path.with_suffix(""))
    content = matrix_page(found)
    if not check:
        with disk_errors(path):
            write_atomic(path, content)
    elif not path.exists():
        raise InputError(f"{display(path)} does not exist. Write it: matrix.")
    elif path.read_bytes() != content:
        raise IntegrityError(f"{display(path)} is not what its runs and published values make. Write it again: matrix.")
    return found


def _dataset(dataset: DatasetMatrix) -> Iterator[str]:
    facts = dataset.collection
    left_out = f"; {facts.queries_unjudged:,} queries of other splits left out" if facts.queries_unjudged else ""
    missing = f"; {facts.missing_documents:,} judged documents are not in it" if facts.missing_documents else ""
    digests = ", ".join(f"{name} `{getattr(facts, f'{name}_sha256')[:12]}`" for name in ("corpus", "queries", "qrels"))
    yield f"## {escaped(dataset.name)}\n"
    yield (
        f"{facts.documents:,} documents, {facts.queries:,} queries, {facts.judged_pairs:,} judged pairs"
        f"{left_out}{missing}. SHA-256: {digests}.\n"
    )
    yield table(["system", *SHOWN.values()], map(_scores, dataset.ranked))
    if said := "".join(f"- {_link(run)}: {escaped(run.diagnosis)}\n" for run in dataset.ranked if run.diagnosis):
        yield f"Passed the null gate, and yet:\n\n{said}"
    if unranked := [run for run in dataset.runs if not run.ranked]:
        yield "Not ranked, since they do not pass the null gate:\n"
        yield table(["system", "null gate", "nDCG@10", "what is wrong"], map(_unranked, unranked))
    if dataset.beside:
        yield "### Beside published values and reference runs\n"
        yield from _beside(dataset)
    yield f"### Against {_BASELINE}\n"
    yield _tests(dataset)
    yield "### What they are, and their commands\n"
    yield table(["system", "what it is", "tokens that its encoder did not read"], map(_identity, dataset.runs))
    yield from _reproduction(dataset)


def _scores(run: MatrixRun) -> list[str]:
    means = [run.means[measure] for measure in SHOWN]
    return [_link(run), *(f"{m.mean:.4f} [{m.low:.4f}, {m.high:.4f}]" for m in means)]


def _unranked(run: MatrixRun) -> list[str]:
    return [_link(run), f"**{run.gate}**", f"{run.means[TESTED].mean:.4f}", escaped(run.diagnosis)]


def _identity(run: MatrixRun) -> list[str]:
    parts = []
    if run.imported is not None:
        parts.append(f"imported run, tag {run.imported.tag}, SHA-256 {run.imported.file_sha256[:12]}")
    if run.bm25 is not None:
        names = ("library", "version", "k1", "b", "stemmer", "stop words")
        library, version, k1, b, stemmer, stop = (str(run.bm25.get(name, "?")) for name in names)
        cut = f", tokenizer version {run.bm25['tokenizer version']}" if "tokenizer version" in run.bm25 else ""
        parts.append(f"{library} {version}, k1 {k1}, b {b}, stemmer: {stemmer}, stop words: {stop}{cut}")
    if run.encoder is not None:
        hub_id, revision, method = (str(run.encoder.get(name, "?")) for name in ("hub_id", "revision", "method"))
        parts.append(f"{hub_id} at {revision[:12]}, {method}")
    return [_link(run), escaped("; ".join(parts)), _lost(run)]


def _lost(run: MatrixRun) -> str:
    if run.truncation is None:
        return "no encoder"
    return "<0.1 %" if 0 < run.truncation.share < 0.0005 else f"{100 * run.truncation.share:.1f} %"


def _beside(dataset: DatasetMatrix) -> Iterator[str]:
    """A row per value, then the sources by number, in the order in which values name them."""
    sources = {row.value.source: row for row in dataset.beside}
    numbers = {name: number for number, name in enumerate(sources, start=1)}
    runs = {run.cell: run for run in dataset.runs}
    yield table(
        ["system", "measure", "ours", "theirs", "difference", "tolerance", "", "source"],
        ([*_value(row, runs), str(numbers[row.value.source])] for row in dataset.beside),
    )
    yield "".join(f"{number}. {_source(sources[name].source)}\n" for name, number in numbers.items())
    reasons = [
        f"- {escaped(row.value.system)}, {SHOWN.get(row.value.measure, row.value.measure)}, source "
        f"{numbers[row.value.source]}: {escaped(row.value.reason or 'the cause is not known')}\n"
        for row in dataset.beside
        if row.agreement == "differs"
    ]
    if reasons:
        yield f"Why some differ by more than the tolerance:\n\n{''.join(reasons)}"


def _value(row: Beside, runs: Mapping[str, MatrixRun]) -> list[str]:
    value, places = row.value, f".{PLACES}f"
    return [
        escaped(value.system) if row.ours is None else _link(runs[value.system]),
        SHOWN.get(value.measure, value.measure),
        "–" if row.ours is None else format(row.ours, places),
        format(value.value, places),
        "–" if row.difference is None else _SIGNS.signed(row.difference, PLACES),
        "none" if value.tolerance is None else f"{value.tolerance:g}",
        f"**{row.agreement}**" if row.agreement == "differs" else row.agreement,
    ]


def _source(source: Source) -> str:
    title = escaped(source.title) if source.url is None else f"[{escaped(source.title)}]({source.url})"
    kind = "Reference run, not published: " if source.kind == "reference run" else ""
    read = f"Read in {escaped(source.read_in)}." if source.read_in else "Second-hand: not read at its source."
    unlike = f" Not as ours: {escaped(source.unlike)}." if source.unlike else ""
    return f"{kind}{title}. {escaped(source.configuration)}. {read}{unlike}"


def _tests(dataset: DatasetMatrix) -> str:
    if dataset.untested:
        return f"{_BASELINE} {dataset.untested}.\n"
    runs = {run.cell: run for run in dataset.runs}
    return table(
        ["system", "nDCG@10 less its", "all", "p", "p adjusted", "win / tie / loss", ""],
        (
            [
                _link(runs[test.cell]),
                f"{_SIGNS.signed(test.difference, 4)} {_signed_ends(test.interval)}",
                _signed_ends(test.simultaneous),
                *(p_text(p) for p in (test.p, test.p_adjusted)),
                f"{test.wins} / {test.ties} / {test.losses}",
                test.side,
            ]
            for test in dataset.tests
        ),
    )


def _reproduction(dataset: DatasetMatrix) -> Iterator[str]:
    """Commands once each, after the systems that they make."""
    systems: dict[tuple[str, ...], list[MatrixRun]] = {}
    for run in dataset.runs:
        systems.setdefault(tuple(run.reproduce), []).append(run)
    for commands, runs in systems.items():
        lines = "".join(f"    {line}\n" for line in commands)
        yield f"Made again by this: {', '.join(map(_link, runs))}.\n\n{lines}"


def _together(matrix: Matrix) -> Iterator[str]:
    yield "## Several datasets\n"
    if not matrix.shared:
        names = ", ".join(escaped(dataset.name) for dataset in matrix.datasets)
        yield f"No system has runs of two datasets or more ({names}), so there is no mean over datasets.\n"
        return
    yield (
        f"Means of {SHOWN[TESTED]} over datasets that all systems of a table were run on; means of different tables "
        f"do not compare. By dataset: where a system stands to {_BASELINE}, and the interval over all systems.\n"
    )
    for shared in matrix.shared:
        columns = list(map(escaped, shared.datasets))
        yield f"### {', '.join(columns)}\n"
        yield table(["system", "mean", *columns, "on all"], map(_average, shared.averages))
    if matrix.alone:
        alone = ", ".join(f"`{cell}` ({escaped(name)})" for cell, name in matrix.alone.items())
        yield f"Without a mean, since they were run on one dataset: {alone}.\n"


def _average(row: Average) -> list[str]:
    stands = ["–" if test is None else f"{test.side} {_signed_ends(test.simultaneous)}" for test in row.tests.values()]
    return [f"`{row.cell}`", f"{row.mean:.4f}", *stands, row.side or "–"]


def _use(matrix: Matrix) -> str:
    dataset = matrix.datasets[0]
    paths = [f"docs/{RUNS}/{dataset.name}/{run.file_name}" for run in dataset.runs]
    baseline = next((p for p, run in zip(paths, dataset.runs, strict=True) if run.cell == EXTERNAL_BASELINE), paths[-1])
    return _USE.format(run=next((p for p in paths if p != baseline), baseline), baseline=baseline)


def _link(run: MatrixRun) -> str:
    return f"[`{run.cell}`]({RUNS}/{run.dataset}/{run.file_name})"


def _signed_ends(interval: Interval) -> str:
    return f"[{_SIGNS.signed(interval.low, 4)}, {_SIGNS.signed(interval.high, 4)}]"


def summary_lines(matrix: Matrix, signs: Signs) -> list[str]:
    """Three lines per dataset, and one for every value that ours differs from by more than its tolerance."""
    lines = []
    for dataset in matrix.datasets:
        said: Counter[str] = Counter(row.agreement for row in dataset.beside)
        unranked = [f"{run.cell} ({run.gate})" for run in dataset.runs if not run.ranked]
        lines += [
            f"{dataset.name}: {len(dataset.ranked)} systems",
            *([f"  do not pass the null gate, not ranked: {', '.join(unranked)}"] if unranked else []),
            f"  against the baseline: {_tested_line(dataset)}",
            f"  published values: {_counted(said, ('agrees', 'differs', 'shown', 'no run'))}",
            *(f"  {signs.no} {_difference(row, signs)}" for row in dataset.beside if row.agreement == "differs"),
        ]
    return [*lines, *(f"{name}: published values, and no run" for name in matrix.without_runs)]


def _tested_line(dataset: DatasetMatrix) -> str:
    if dataset.untested:
        return f"{EXTERNAL_BASELINE} {dataset.untested}"
    return _counted(Counter(test.side for test in dataset.tests), ("above", "below", "not told apart"))


def _counted(counts: Mapping[str, int], names: Sequence[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in names)


def _difference(row: Beside, signs: Signs) -> str:
    value = row.value
    less = signs.signed(row.difference or 0.0, PLACES)
    return printable(f"{value.system}: {value.measure} {less} from {value.value:g}, {row.source.title}")


def as_data(matrix: Matrix) -> dict[str, Any]:
    """Everything but the queries' scores, which are in the runs' files."""
    return {
        "datasets": [_dataset_data(dataset) for dataset in matrix.datasets],
        "shared": [asdict(shared) for shared in matrix.shared],
        "without_runs": list(matrix.without_runs),
    }


def _dataset_data(dataset: DatasetMatrix) -> dict[str, Any]:
    return {
        "name": dataset.name,
        "collection": dataset.collection.model_dump(),
        "runs": [run.model_dump(exclude={"per_query", "collection", "schema_version"}) for run in dataset.runs],
        "published": [
            row.value.model_dump()
            | {"source": row.source.model_dump()}
            | {field: getattr(row, field) for field in ("ours", "difference", "agreement")}
            for row in dataset.beside
        ],
        "tests": [asdict(test) for test in dataset.tests],
    }
