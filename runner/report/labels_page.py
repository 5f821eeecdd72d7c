"""One offline HTML file in which a person grades pairs by keyboard: no server, no network, answers as a download."""

import html
import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from runner.base.canonical import JSON, digest, sha256
from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.labels import load_labels
from runner.eval_set.shapes.labels import BatchRow, Label, Passage
from runner.eval_set.version import Version
from runner.judge.second_reading import judges_of
from runner.report.html_file import write_html
from runner.report.page_frame import LONGEST_TEXT, as_is, inert, rendered

SHORTEST_SHARED = 160
"""Characters from which on a passage stands once on a page, with links to it from its other places."""

_CAPTION = re.compile(r"^- \*\*([0-3]), ([^*\n]{1,40}?)\.?\*\*", re.MULTILINE)


def page(rows: Sequence[BatchRow], prompt: str, *, title: str, judge: str = "") -> bytes:
    """UTF-8 HTML that shows one pair at a time and hands out JSONL answers: the same bytes for the same input.

    Without script it is a list to read. What is graded stays in the browser under a digest of the rows and the
    judge, so that pages do not mix. Texts are shown, never interpreted, with unseen characters spelled out. Raises
    InputError for no rows, a row twice, rows of several versions, or rows that were exported under another prompt.
    """
    _check(rows, prompt)
    return rendered(
        "labels.html.j2",
        styles=("labels_style.css.j2",),
        scripts=tuple(f"labels_{part}.js.j2" for part in ("answers", "view", "keys")),
        title=inert(title),
        prompt=_shown(prompt),
        captions=_captions(prompt),
        facts=_facts(rows, judge.strip()),
        pairs=_pairs(rows),
    )


def write_labels_page(version: Version, batches: Sequence[Path], output: Path | None, *, judge: str = "") -> Path:
    """Where the page over some batch files was written: `output`, or beside the batches and named after them.

    Without `batches` they are those of the pool that hold a row without a label. Raises InputError for a batch that is
    none, was edited, or is of another version or prompt, and for an output that `write_html` refuses.
    """
    rows = [row for path in list(batches) or _waiting(version) for row in read_batch(path)]
    for row in rows:
        if row.version != version.number_name:
            raise InputError(
                f"{row.batch} was exported for {row.version}, not for {version.number_name}. Export it anew."
            )
    made = page(rows, _prompt(version), title=f"{version.number_name}, {_name(rows)}", judge=judge)
    path = output or version.judging / f"{_name(rows)}.html"
    return write_html(path, made, version.work, version.folder.parent)


def _prompt(version: Version) -> str:
    try:
        return version.judge_path.read_bytes().decode()
    except FileNotFoundError as error:
        raise InputError(f"{version.judge_path} is missing. Restore it from git and run the command again.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{version.judge_path} is not UTF-8 ({error}). Restore it from git.") from error


def _waiting(version: Version) -> list[Path]:
    """The batches of the pool with a row that no label answers; InputError if there is none."""
    batches = batch_files(version.judging)
    if not batches:
        raise InputError(
            f"{version.name} has no batches yet. Run {DRIVER} run {version.flags} until pairs are to be judged."
        )
    labels = load_labels(version.labels_path)
    answered = {(label.batch, label.query_id, label.doc_id) for label in labels}
    found = [
        path
        for path in batches
        if any((row.batch, row.query_id, row.doc_id) not in answered for row in read_batch(path))
    ]
    if not found:
        raise InputError(_nothing_waits(version, labels))
    return found


def _nothing_waits(version: Version, labels: Sequence[Label]) -> str:
    """What to do if the pool is judged; a page over second readings is another person's, so it must be asked for."""
    read_by = judges_of(labels)
    doubles = [
        path
        for path in batch_files(version.judging, "double")
        if any(len(read_by[row.query_id, row.doc_id]) < 2 for row in read_batch(path))
    ]
    if not doubles:
        return f"No batch of {version.name} waits for a judge. Name the batches that are to be read once more."
    return (
        f"Only second readings of {version.name} wait, for somebody who has not judged these pairs. A page over them: "
        f"{DRIVER} labels page {version.flags} {shlex.join(map(str, doubles))}"
    )


def _check(rows: Sequence[BatchRow], prompt: str) -> None:
    if not rows:
        raise InputError("There is no pair to judge. Name a batch that holds some.")
    versions = sorted({row.version for row in rows})
    if len(versions) > 1:
        raise InputError(f"A page is about one version; these batches are of {' and '.join(versions)}.")
    expected = sha256(prompt)
    seen = set()
    for row in rows:
        where = f"{row.batch}: query {row.query_id} and {row.doc_id}"
        if row.prompt_sha256 != expected:
            raise InputError(f"{where} were exported under another judge prompt. Run the driver, which exports anew.")
        if (row.batch, row.query_id, row.doc_id) in seen:
            raise InputError(f"{where} are there twice. Name each batch once.")
        if [passage.number for passage in row.evidence] != list(range(1, len(row.evidence) + 1)):
            raise InputError(f"{where}: the passages are not numbered 1, 2, 3. Export the batch anew.")
        seen.add((row.batch, row.query_id, row.doc_id))


def _name(rows: Sequence[BatchRow]) -> str:
    """The batch, or the first of several and how many more there are; "" for none."""
    names = list(dict.fromkeys(row.batch for row in rows))
    return f"{names[0]}-and-{len(names) - 1}-more" if len(names) > 1 else "".join(names)


def _facts(rows: Sequence[BatchRow], judge: str) -> Markup:
    """What the script needs beside the list, as JSON without an angle bracket, so that no document can end it."""
    facts = {
        "key": digest([judge, [row.row_sha256 for row in rows]]),
        "judge": judge,
        "file": f"{_name(rows)}.answers.jsonl",
        "version": rows[0].version,
        "prompt_sha256": rows[0].prompt_sha256,
        "rows": [[row.batch, row.query_id, row.doc_id, row.evidence_sha256, len(row.evidence)] for row in rows],
    }
    text = json.dumps(facts, ensure_ascii=True, separators=(",", ":"))
    return as_is(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _pairs(rows: Sequence[BatchRow]) -> list[dict[str, Any]]:
    """The list as the template shows it: a long passage that occurred before is a link to its first place."""
    texts = _Texts()
    return [
        {
            "query": _shown(row.query),
            "title": _shown(row.title),
            "doc_id": _shown(row.doc_id),
            "passages": [
                texts.passage(passage, passage.start > (row.evidence[place - 1].end if place else 0), number)
                for place, passage in enumerate(row.evidence)
            ],
        }
        for number, row in enumerate(rows, start=1)
    ]


class _Texts:
    """The passages of a page so far, each long text once."""

    def __init__(self) -> None:
        self._count = 0
        self._places: dict[str, tuple[int, int, int]] = {}

    def passage(self, passage: Passage, gap: bool, pair: int) -> dict[str, JSON]:
        """A passage of the pair of that number, with `gap` where text was left out before it."""
        first = self._places.get(passage.text)
        if first is not None:
            return {"gap": gap, "first": first}
        self._count += 1
        if len(passage.text) >= SHORTEST_SHARED:
            self._places[passage.text] = (self._count, pair, passage.number)
        return {"gap": gap, "first": None, "id": self._count, "text": _shown(passage.text.strip("\n"))}


def _shown(text: str) -> Markup:
    """A text for the inside of an element; quotes stay as they are, since a page holds megabytes of them."""
    pieces = (text[start : start + LONGEST_TEXT] for start in range(0, len(text), LONGEST_TEXT))
    return as_is(html.escape("".join(inert(piece) for piece in pieces), quote=False))


def _captions(prompt: str) -> list[str]:
    """What the prompt calls the grades 0 to 3, "" each if it does not name all four as judge.md does."""
    found = {int(grade): caption for grade, caption in _CAPTION.findall(prompt)}
    return [inert(found[grade]) if len(found) == 4 else "" for grade in range(4)]
