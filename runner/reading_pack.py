"""The reading pack: a stratified 25 documents from which queries are written, and the form of queries.yaml."""

from collections.abc import Sequence
from pathlib import Path

from runner.canonical import write_atomic
from runner.errors import InputError
from runner.eval_set import Version
from runner.records import Document

PACK_SIZE = 25

TEMPLATE = """\
# At least 25 queries; 8 or more of them should be a person's own (origin: hand). Save as {path}
# kind: citation, topic, authority, paraphrase, quote, ...; origin: hand, generated or harvested.
# source_document: the document that was being read; it is a note, not a label.
schema_version: 1
queries:
  - id: q01
    text: "which programs help small towns replace lead water pipes?"
    kind: topic
    origin: hand
    source_document: "{doc_id}"
"""


def write_reading_pack(version: Version, documents: Sequence[Document], seed: int) -> Path:
    """The folder with the pack: one text file a document and a template of queries.yaml."""
    from samplers.sampling import reading_pack

    folder = version.work / "reading"
    pack = reading_pack(documents, PACK_SIZE, seed)
    if not pack:
        raise InputError(
            f"{version.name}: each of its {len(documents)} documents has a status (repealed, reserved, short, ...), so "
            "there is none to write queries from. Sample another corpus."
        )
    for number, document in enumerate(pack, start=1):
        head = f"# {document.title}\n\n{document.doc_id} · {document.stratum} · {document.url}\n\n"
        write_atomic(folder / f"{number:02d}-{document.doc_id}.md", (head + document.text + "\n").encode())
    template = TEMPLATE.format(path=version.queries_path, doc_id=pack[0].doc_id)
    write_atomic(folder / "queries.yaml.template", template.encode())
    return folder
