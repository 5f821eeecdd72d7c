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
from runner.base.records import Interval
from runner.base.store import disk_errors
from runner.eval_set.catalog import EXTERNAL_BASELINE
from runner.eval_set.version import DRIVER
from runner.score.sign_flip import Side
from runner.tools.markdown import escaped, table
from runner.tools.matrix.matrix import ALPHA, PLACES, TESTED, Beside, DatasetMatrix, Matrix, make_matrix
from runner.tools.matrix.runs import MatrixRun, Measure, Source
from runner.tools.symbols import Signs

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
{_BASELINE} on the same queries. It claims nothing of other collections or of legislative text, and of no published
system that it is beaten: a published mean comes without its queries' scores.
"""

_READING = f"""\
## How to read it

- An interval in brackets is of 95 %: a percentile bootstrap over queries beside a score, the inverted sign-flip test
  beside a difference. `all` holds for all systems of the dataset at once, and decides "above" and "below" together
  with a `p skew` of at most {ALPHA:g}, an adjusted p that skewed differences do not mislead.
- `p adjusted` is max-T over the systems of the dataset. [statistics.md](statistics.md) has the tests.
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
    blocks += [_everywhere(matrix), _use(matrix)]
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
    yield table(["system", *SHOWN.values()], map(_scores, dataset.runs))
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
        ["system", "nDCG@10 less its", "all", "p", "p adjusted", "p skew", "win / tie / loss", ""],
        (
            [
                _link(runs[test.cell]),
                f"{_SIGNS.signed(test.difference, 4)} {_signed_ends(test.interval)}",
                _signed_ends(test.simultaneous),
                *(p_text(p) for p in (test.p, test.p_adjusted, test.p_skew)),
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


def _everywhere(matrix: Matrix) -> str:
    names = [escaped(dataset.name) for dataset in matrix.datasets]
    lines = ["## All datasets", ""]
    if len(names) == 1:
        lines.append(
            f"There is one dataset, {names[0]}: no mean over datasets, and nothing below says anything of another one."
        )
    else:
        lines.append(f"Means of {SHOWN[TESTED]} over {', '.join(names)}, of systems with a run of each:")
        means = table(["system", "mean"], ([f"`{row.cell}`", f"{row.mean:.4f}"] for row in matrix.everywhere))
        lines += ["", means.rstrip()]
        lines += [
            f"- `{cell}` has no mean: it lacks {', '.join(map(escaped, lacking))}."
            for cell, lacking in matrix.lacking.items()
        ]
    lines.append("")
    if untested := ", ".join(escaped(dataset.name) for dataset in matrix.datasets if dataset.untested):
        lines += [f"No system is said to score above or below {_BASELINE}: nothing is tested on {untested}.", ""]
    else:
        lines += [*_claim(matrix, "above", "Scores above"), *_claim(matrix, "below", "Scores below")]
    return "\n".join(lines)


def _claim(matrix: Matrix, side: Side, verb: str) -> list[str]:
    found = matrix.on_every_dataset(side)
    where = "on every dataset" if len(matrix.datasets) > 1 else f"on {escaped(matrix.datasets[0].name)}"
    rule = f"simultaneous interval of the difference wholly {side} 0, p skew at most {ALPHA:g}"
    head = f"{verb} {_BASELINE} {where} ({rule}):"
    if not found:
        return [f"{head} no system.", ""]
    lines = [head, ""]
    for row in found:
        ends = (f"{escaped(name)} {_signed_ends(interval)}" for name, interval in row.simultaneous.items())
        lines.append(f"- `{row.cell}`: {', '.join(ends)}")
    return [*lines, ""]


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
        lines += [
            f"{dataset.name}: {len(dataset.runs)} systems",
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
        "everywhere": [asdict(row) for row in matrix.everywhere],
        "lacking": {cell: list(names) for cell, names in matrix.lacking.items()},
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
