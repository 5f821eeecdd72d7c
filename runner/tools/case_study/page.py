"""A case study as lines for a terminal, and as blocks that replace what stands between markers of a page."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from runner.base.canonical import JSON, json_bytes, refuse_special, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.figures import p_text
from runner.base.given_files import display, printable
from runner.base.store import disk_errors
from runner.base.terminal import Signs
from runner.tools.case_study.case_study import measured, refused_by, tally
from runner.tools.case_study.zoo_lists import TABLE
from runner.tools.markdown import escaped, table

_OPENING = "<!-- generated:"
_BLOCK = re.compile(
    rf"({_OPENING} (?P<name>[^\r\n]+?) -->(?P<end>\r?\n))(?:(?!{_OPENING}).)*?(<!-- end of generated -->)", re.DOTALL
)
_SIGNS = Signs()
_LETTERS = "ABCD"

Numbered = Sequence[tuple[int, dict[str, JSON]]]
"""Rows of systems with their numbers in the blind table, from 1."""


def write_study(study: dict[str, JSON], page: Path) -> list[Path]:
    """The two files written: `page` with its blocks anew, and the figures beside it as JSON."""
    contents = _contents(study, page)
    with disk_errors(page.parent):
        for path, content in contents.items():
            write_atomic(path, content)
    return list(contents)


def check_page(page: Path, *, written: bool) -> None:
    """Check that the page has known, closed blocks and, if it was `written`, its figures beside it; else InputError."""
    _page_text(page)
    if written:
        _read(page.with_suffix(".json"))


def check_study(study: dict[str, JSON], page: Path) -> str:
    """A sentence that page and figures are what the study gives; an IntegrityError names those that are not."""
    other = [display(path) for path, content in _contents(study, page).items() if _read(path) != content]
    if other:
        raise IntegrityError(
            f"{' and '.join(other)}: not what this folder gives. Run again with --write {display(page)}"
        )
    return f"{display(page)} is what this folder gives, byte for byte"


def with_blocks(text: str, study: dict[str, JSON]) -> str:
    """The text with every block between markers replaced, with its line ends kept; KeyError for an unknown block."""
    numbered = list(enumerate(study["systems"], start=1))

    def made(block: re.Match[str]) -> str:
        parts = "\n".join(BLOCKS[block["name"]](study, numbered))
        return block[1] + f"\n{parts}\n".replace("\n", block["end"]) + block[4]

    return _BLOCK.sub(made, text)


def _contents(study: dict[str, JSON], page: Path) -> dict[Path, bytes]:
    return {page: with_blocks(_page_text(page), study).encode(), page.with_suffix(".json"): json_bytes(study)}


def _page_text(page: Path) -> str:
    if page.suffix.lower() == ".json":
        raise InputError(f"{display(page)} is where the figures go. Give the page of Markdown beside it.")
    try:
        text = _read(page).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{display(page)} is not UTF-8. Give the page that the blocks belong to.") from error
    _refuse_unclosed(text, page)
    named = [block["name"] for block in _BLOCK.finditer(text)]
    if not named or set(named) - set(BLOCKS):
        unknown = ", ".join(printable(name) for name in named if name not in BLOCKS) or "none at all"
        raise InputError(
            f"{display(page)} has {unknown} as generated blocks. A block is a line '<!-- generated: NAME -->', later a "
            f"line '<!-- end of generated -->'; the names: {', '.join(BLOCKS)}."
        )
    return text


def _refuse_unclosed(text: str, page: Path) -> None:
    closed = {block.start() for block in _BLOCK.finditer(text)}
    for opening in re.finditer(rf"{_OPENING}[^\r\n]*", text):
        if opening.start() not in closed:
            line = text.count("\n", 0, opening.start()) + 1
            raise InputError(
                f"{display(page)}:{line}: '{printable(opening[0])}' opens a block that does not end. End its line "
                "after '-->', and put a line '<!-- end of generated -->' before what follows the block."
            )


def _read(path: Path) -> bytes:
    refuse_special(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{display(path)} cannot be read ({error.strerror}).") from error


def _blind(study: dict[str, JSON], numbered: Numbered) -> Iterator[str]:
    rows = ([str(number), *(f"{row['reported'][measure]:.4f}" for measure in TABLE)] for number, row in numbered)
    yield table(["no.", "nDCG@10", "Recall@10", "MRR@10"], rows)


def _verdicts(study: dict[str, JSON], numbered: Numbered) -> Iterator[str]:
    head = ["no.", "system", "nDCG@10", "gate", "refused by", "A–D, recall@10", "A–D, mrr@10"]
    yield table(head, (_verdict(number, row) for number, row in numbered))
    yield f"Real engines are in bold. {tally(study)}\n"


def _verdict(number: int, row: dict[str, JSON]) -> list[str]:
    golds = [f"{_SIGNS.of(found['verdict'])} {found['verdict']}" for found in row["single_gold"]]
    verdict, name = row["graded"]["verdict"], escaped(row["name"])
    shown = f"**{name}**" if row["kind"] == "engine" else name
    gate = f"{_SIGNS.of(verdict)} {verdict}"
    return [str(number), shown, f"{measured(row):.4f}", gate, refused_by(row), *(golds or ["", ""])]


def _zoo(study: dict[str, JSON], numbered: Numbered) -> Iterator[str]:
    yield table(
        ["no.", "system", "what is broken", "where one meets it", "what the three scores hide"],
        (
            [str(number), *(escaped(row[field]) for field in ("name", "broken", "met", "hidden"))]
            for number, row in numbered
            if row["kind"] == "broken"
        ),
    )


def _passed(study: dict[str, JSON], numbered: Numbered) -> Iterator[str]:
    baseline, n_queries = escaped(study["baseline"]), study["collection"]["queries"]
    rows = []
    for number, row in numbered:
        if row["kind"] == "broken" and row["graded"]["verdict"] == "pass":
            gap, low, high = (_SIGNS.signed(row["difference"][part], 4) for part in ("mean", "low", "high"))
            zeros = f"{row['zero']} of {n_queries}"
            rows.append(
                [str(number), escaped(row["name"]), f"{gap} ({low} to {high})", zeros, escaped(row["caught_by"])]
            )
    yield table(["no.", "system", f"nDCG@10 less {baseline}'s, 95 % interval", "queries at 0", "what finds it"], rows)
    sharing = study["collection"]["neighbours_sharing"]
    yield f"Queries that share a relevant document with the next one in the file: {sharing} of {n_queries}.\n"


def _diagnoses(study: dict[str, JSON], numbered: Numbered) -> Iterator[str]:
    yield "".join(
        f"- {number}, {escaped(row['name'])}: {escaped(row['cause'])}.\n" for number, row in numbered if row["cause"]
    )


def _nulls(study: dict[str, JSON], numbered: Numbered) -> Iterator[str]:
    names = [null["name"] for null in study["systems"][0]["graded"]["nulls"]]
    yield table(
        ["no.", "system", *names],
        (
            [str(number), escaped(row["name"]), *(_cell(null, null["verdict"]) for null in row["graded"]["nulls"])]
            for number, row in numbered
        ),
    )


def _single_gold(study: dict[str, JSON], numbered: Numbered) -> Iterator[str]:
    for place, measure in enumerate(found["measure"] for found in study["systems"][0]["single_gold"]):
        nulls = study["systems"][0]["single_gold"][place]["nulls"]
        heads = [f"{letter} {null['name']}" for letter, null in zip(_LETTERS, nulls, strict=True)]
        yield table(["no.", "system", measure, *heads], (_gold(number, row, place) for number, row in numbered))


def _gold(number: int, row: dict[str, JSON], place: int) -> list[str]:
    found = row["single_gold"][place]
    cells = (_cell(null, "pass" if null["passed"] else "fail") for null in found["nulls"])
    return [str(number), escaped(row["name"]), f"{found['real']:.4f}", *cells]


def _measured_on(study: dict[str, JSON], numbered: Numbered) -> Iterator[str]:
    facts, gate = study["collection"], study["gate"]
    kinds = [row["kind"] for _, row in numbered]
    digests = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(facts["sha256"].items()))
    yield (
        f"{escaped(facts['name'])}: {facts['documents']:,} documents, {facts['queries']:,} queries, "
        f"{facts['judged_pairs']:,} judged pairs; {len(kinds)} systems, of which {kinds.count('engine')} are real "
        f"engines and {kinds.count('broken')} broken predictors. "
        f"The engine that gets broken is {escaped(study['baseline'])}. "
        f"Asked against every null: p of at most {gate['alpha']:g} in {gate['draws']:,} draws and a difference of at "
        f"least {gate['tau']:g}; seed {gate['seed']}. The files by SHA-256: {digests}.\n"
    )


BLOCKS: Mapping[str, Callable[[dict[str, JSON], Numbered], Iterator[str]]] = {
    "measured on": _measured_on,
    "blind table": _blind,
    "verdicts": _verdicts,
    "zoo": _zoo,
    "passed": _passed,
    "diagnoses": _diagnoses,
    "nulls": _nulls,
    "single gold": _single_gold,
}
"""The blocks by the names that markers give them, in parts that a blank line separates."""


def _cell(null: dict[str, JSON], verdict: str) -> str:
    return f"{_SIGNS.of(verdict)} {_SIGNS.signed(null['delta'], 4)}, p {p_text(null['p'])}"


_WIDEST = 38


def study_lines(study: dict[str, JSON], signs: Signs) -> list[str]:
    """A line per system by its reported nDCG@10, then what a table hides of each, then the count."""
    facts, rows = study["collection"], study["systems"]
    return [
        f"{printable(facts['name'])}: {facts['documents']:,} documents, {facts['queries']:,} queries; * is broken",
        "",
        _row("", "system", TABLE, "gate", "A-D", "refused by"),
        *(_system(number, row, signs) for number, row in enumerate(rows, start=1)),
        "",
        "gate: nulls on graded judgments, nDCG@10; A-D: four nulls on single golds, recall@10 and mrr@10",
        "",
        "what the three scores would have hidden:",
        *(
            f"  {number:>2} {row['name']}: {row['hidden']}"
            for number, row in enumerate(rows, start=1)
            if not row["hidden"].startswith("nothing")
        ),
        "",
        tally(study),
    ]


def _system(number: int, row: dict[str, JSON], signs: Signs) -> str:
    mark = "" if row["kind"] == "engine" else "* "
    figures = [f"{row['reported'][measure]:.4f}" for measure in TABLE]
    golds = " ".join(signs.of(found["verdict"]) for found in row["single_gold"])
    gate = f"{signs.of(row['graded']['verdict'])} {row['graded']['verdict']}"
    return _row(str(number), mark + row["name"], figures, gate, golds, refused_by(row)).rstrip()


def _row(number: str, name: str, figures: Sequence[str], gate: str, golds: str, refused: str) -> str:
    return f"{number:>3} {name:<{_WIDEST}}" + "".join(f"{f:>11}" for f in figures) + f"  {gate:<17}{golds:<9}{refused}"
