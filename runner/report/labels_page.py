"""One offline HTML file in which a person grades pairs by keyboard: no server, no network, answers as a download."""

import gzip
import html
import json
import re
import shlex
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

from runner.base.canonical import digest, sha256
from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.eval_set.batches import batch_files, read_batch
from runner.eval_set.corpus import archived_documents
from runner.eval_set.labels import load_labels
from runner.eval_set.shapes.labels import BatchRow
from runner.eval_set.version import Version
from runner.judge.prep_labels import KINDS
from runner.judge.second_reading import unread_doubles
from runner.report.html_file import write_html
from runner.report.page_frame import LONGEST_TEXT, as_is, inert, rendered

LARGEST_WHOLES = 16_000_000
"""Bytes of whole documents on one page, compressed: some hundred hearings."""

_CAPTION = re.compile(r"^- \*\*([0-3]), ([^*\n]{1,40}?)\.?\*\*", re.MULTILINE)


def page(
    rows: Sequence[BatchRow],
    prompt: str,
    *,
    title: str,
    judge: str = "",
    documents: Mapping[str, str] | None = None,
) -> bytes:
    """Return UTF-8 HTML that shows one pair at a time and hands out JSONL answers: the same bytes for the same input.

    Without script it is a list to read. What is graded stays in the browser under a digest of the rows and the judge,
    so that pages do not mix. Texts are shown, never interpreted. `documents` are texts by id, None if they are not
    here: of those that are shown in part the page holds the whole, up to LARGEST_WHOLES in all. InputError for no rows,
    a row twice, and rows that were exported under another prompt.
    """
    if not rows:
        raise InputError("There is no pair to judge. Name a batch that holds some.")
    if len({(row.batch, row.query_id, row.doc_id) for row in rows}) < len(rows):
        raise InputError("A batch is there twice. Name each batch once.")
    if any(row.prompt_sha256 != sha256(prompt) for row in rows):
        raise InputError("Pairs were exported under another judge prompt. `run` exports them anew.")
    judge, captions = judge.strip(), {int(grade): caption for grade, caption in _CAPTION.findall(prompt)}
    facts = {
        "key": digest([judge, [row.row_sha256 for row in rows]]),
        "judge": judge,
        "file": f"{_name(rows)}.answers.jsonl",
        "version": rows[0].version,
        "prompt_sha256": rows[0].prompt_sha256,
        "archived": documents is not None,
        "wholes": _wholes(rows, documents or {}),
        "rows": [
            [row.batch, row.query_id, row.doc_id, row.evidence_sha256, len(row.evidence), row.left_out] for row in rows
        ],
    }
    text = json.dumps(facts, ensure_ascii=True, separators=(",", ":"))
    return rendered(
        "labels.html.j2",
        styles=("labels_style.css.j2",),
        scripts=("labels.js.j2",),
        asked={"shown": _shown},
        title=inert(title),
        prompt=prompt,
        captions=[inert(captions[grade]) if len(captions) == 4 else "" for grade in range(4)],
        # Without an angle bracket no document can end the script's facts.
        facts=as_is(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")),
        rows=rows,
    )


def write_labels_page(version: Version, batches: Sequence[Path], output: Path | None, *, judge: str = "") -> Path:
    """Return where the page over some batch files was written: `output`, or beside the batches and named after them.

    Without `batches` they are those of the pool that hold a row without a label. InputError for a batch of another
    version, and as `page`, `read_batch` and `write_html` raise it.
    """
    rows = [row for path in list(batches) or _waiting(version) for row in read_batch(path)]
    for row in rows:
        if row.version != version.number_name:
            raise InputError(f"{row.batch} was exported for {row.version}, not for {version.number_name}.")
    try:
        prompt = version.judge_path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{version.judge_path} cannot be read ({error}). Restore it from git or a backup.") from error
    # From the archive alone, which is where documents may be read: never from a folder that somebody drew from.
    archived = archived_documents(version) if any(row.left_out for row in rows) else ()
    documents = None if archived is None else {document.doc_id: document.text for document in archived}
    title = f"{version.number_name}, {_name(rows)}"
    made = page(rows, prompt, title=title, judge=judge, documents=documents)
    return write_html(output or version.judging / f"{_name(rows)}.html", made, version.work, version.folder.parent)


def _waiting(version: Version) -> list[Path]:
    """Return the batches of the first judge with a row that no label answers; InputError if there is none, with what to
    do.
    """
    batches = [path for kind in KINDS for path in batch_files(version.judging, kind)]
    labels = load_labels(version.labels_path)
    if not batches:
        raise InputError(f"{version.name} has no batches yet. Run {DRIVER} run {version.flags} until pairs are due.")
    answered = {(label.batch, label.query_id, label.doc_id) for label in labels}
    pairs = {path: {(row.batch, row.query_id, row.doc_id) for row in read_batch(path)} for path in batches}
    if waiting := [path for path in batches if not pairs[path] <= answered]:
        return waiting
    # Second readings are another judge's work, so they are on no page that did not ask for them.
    doubles = unread_doubles(version, labels)
    if not doubles:
        raise InputError(f"No batch of {version.name} waits for a judge. Name those that are to be read once more.")
    raise InputError(
        f"Only second readings of {version.name} wait, for somebody who has not judged these pairs. A page over them: "
        f"{DRIVER} labels page {version.flags} {shlex.join(map(str, doubles))}"
    )


def _wholes(rows: Sequence[BatchRow], documents: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of documents that are shown in part, compressed and in base64; those beyond the limit are left
    out.
    """
    wholes: dict[str, str] = {}
    room = LARGEST_WHOLES
    for name in dict.fromkeys(row.doc_id for row in rows if row.left_out and row.doc_id in documents):
        packed = b64encode(gzip.compress(_plain(documents[name]).encode(), mtime=0)).decode()
        if len(packed) <= room:
            wholes[name] = packed
            room -= len(packed)
    return wholes


def _name(rows: Sequence[BatchRow]) -> str:
    """Return the batch, or the first of several and how many more there are; "" for none."""
    names = list(dict.fromkeys(row.batch for row in rows))
    return f"{names[0]}-and-{len(names) - 1}-more" if len(names) > 1 else "".join(names)


def _shown(text: str) -> Markup:
    """Return a text for the inside of an element; quotes stay as they are, since a page holds megabytes of them."""
    return as_is(html.escape(_plain(text), quote=False))


def _plain(text: str) -> str:
    """Return a text with its unseen characters spelled out."""
    # In pieces, since `inert` cuts what is longer.
    return "".join(inert(text[start : start + LONGEST_TEXT]) for start in range(0, len(text), LONGEST_TEXT))
