"""The reading pack: a stratified 25 documents from which queries are written, and the form of queries.yaml."""

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from runner.base.canonical import jsonl_bytes, write_atomic
from runner.base.errors import InputError, InputNeeded
from runner.base.places import DRIVER, OWN_FILES
from runner.base.records import Document
from runner.base.steps import Step
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.version import Version
from runner.queries.kinds import KINDS, WANTED_GENERATED, WANTED_HAND, whole_shares

PACK_SIZE = 25
INDEX = "index.jsonl"
INSTRUCTIONS = OWN_FILES / "templates" / "draft-queries.md"
"""How queries are written, for a person and for a language model; it stands in every pack."""

TEMPLATE = """\
# At least {n_queries} queries; {n_hand} or more of them should be a person's own (origin: person). Save as a file
# of its own; `queries add` puts it into the version. draft-queries.md beside this says how to write.
# origin: who wrote it, "person" or the name of the language model; "traffic" for one of a log. source_document: the
# doc_id (index.jsonl has them) of the document that was being read; it is judged like any other. note is free.
# plain: as people type it, names and numbers included. paraphrased: the same need in household words.
# A citation, quote or attribution has text in their place.
# kind is one of these, with the number that this source's share of {n_queries} would be:
{kinds}schema_version: 1
queries:
  # Invented examples; yours take their place.
  - id: q01
    plain: "Atlantis tower clock winding contract"
    paraphrased: "who is paid to keep the town's time, and how much?"
    kind: topic
    origin: person
    source_document: "..."
    note: "what in the document serves the need, or what makes the query hard"
  - id: q02
    text: "Atlantis Ordinance 12, section 3"
    kind: citation
    origin: person
    source_document: "..."
    note: ""
"""


def reading_folder(version: Version) -> Path:
    """Return where the pack lies."""
    return version.work / "reading"


def need_sampled(version: Version, given: Path) -> None:
    """Check that a corpus was sampled; an InputNeeded names the command that samples the given one."""
    if not version.corpus_path.exists():
        raise InputNeeded(
            f"{version.name} has no corpus yet. The driver samples it, and writes the pack to read: "
            f"{DRIVER} run {version.flags} --corpus-path {shlex.quote(str(given))}"
        )


def queries_step(version: Version, again: str, count: int | None = None) -> Step:
    """Return what a version with `count` queries waits for, None before any; `again` goes on afterwards."""
    version = version.origin
    folder, flags = reading_folder(version), version.flags
    return Step(
        "queries",
        "open",
        f"{MIN_QUERIES - count} more to be written: there are {count} queries, and at least {MIN_QUERIES} are needed"
        if count is not None
        else f"no queries yet: at least {MIN_QUERIES} are needed; {WANTED_HAND} or more of them your own",
        (
            f"Read the documents in {folder}; to have them written again:\n{DRIVER} queries sample {flags}",
            f"Write yours into a file, in the form of {folder / 'queries.yaml.template'}; have others written by "
            f"{INSTRUCTIONS.name} there. Look them over, and add them:\n{DRIVER} queries check {flags} FILE\n"
            f"{DRIVER} queries add {flags} FILE",
            again,
        ),
    )


def pack_documents(version: Version, documents: Sequence[Document], seed: int) -> list[Document]:
    """Return the documents of the pack in reading order; an InputError if every document has a status."""
    from samplers.corpus.sampling import reading_pack

    pack = reading_pack(documents, PACK_SIZE, seed)
    if not pack:
        raise InputError(
            f"{version.name}: each of its {len(documents)} documents has a status (repealed, reserved, short, ...), so "
            "there is none to write queries from. Sample another corpus."
        )
    return pack


def write_reading_pack(version: Version, documents: Sequence[Document], seed: int) -> Path:
    """Write the pack and return its folder: a text file per document, index.jsonl, instructions, a form of queries.

    Files of an earlier pack that are not of this one are removed.
    """
    folder = reading_folder(version)
    pack = pack_documents(version, documents, seed)
    files = {f"{number:02d}-{_file_name(document)}.md": document for number, document in enumerate(pack, start=1)}
    # Only what an earlier pack's index names is removed: the folder may hold somebody's drafts.
    for name in _indexed(folder) - files.keys():
        (folder / name).unlink(missing_ok=True)
    for name, document in files.items():
        head = f"# {document.title}\n\n{document.doc_id} · {document.stratum} · {document.url}\n\n"
        write_atomic(folder / name, (head + document.text + "\n").encode())
    write_atomic(folder / "queries.yaml.template", _template(version).encode())
    write_atomic(folder / INSTRUCTIONS.name, INSTRUCTIONS.read_bytes())
    rows = (
        {"doc_id": one.doc_id, "file": name, "n_chars": len(one.text)}
        | {"stratum": one.stratum, "title": one.title, "url": one.url}
        for name, one in files.items()
    )
    write_atomic(folder / INDEX, jsonl_bytes(rows))
    return folder


def _file_name(document: Document) -> str:
    """Return the document's id as the name of a file: an id with slashes or dots must not lead out of the folder."""
    return re.sub(r"[^A-Za-z0-9._@-]+", "-", document.doc_id)[:120]


def _indexed(folder: Path) -> set[str]:
    """Return the files that an earlier pack wrote here, as far as its index can be read."""
    try:
        lines = (folder / INDEX).read_text(encoding="utf-8").splitlines()
        named = {str(json.loads(line)["file"]) for line in lines}
    except (OSError, ValueError, TypeError, KeyError):
        return set()
    return {name for name in named if re.fullmatch(r"\d\d-[A-Za-z0-9._@-]+\.md", name)}


def _template(version: Version) -> str:
    n_queries = WANTED_HAND + WANTED_GENERATED
    asked = {kind.kind: kind for kind in version.source.queries}
    kinds = "".join(
        f"#   {kind} {count}: {KINDS[kind]}; here: {asked[kind].wanted}, such as: {asked[kind].example}\n"
        for kind, count in whole_shares(version.source.queries, n_queries).items()
    )
    return TEMPLATE.format(n_queries=n_queries, n_hand=WANTED_HAND, kinds=kinds)
