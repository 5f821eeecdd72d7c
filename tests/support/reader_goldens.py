"""What a reader makes of a fixture, written so that a person can check it.

`python -m tests.support.reader_goldens SOURCE` writes it.

Beside the fixture `tests/data/SOURCE/F` lies `F.golden`: every document with its facts, its text, its sections and
the chunks of the source's structural chunker.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from chunkers.registry import chunker
from runner.base.errors import DocumentError
from runner.base.records import Document
from runner.eval_set.catalog import SOURCES
from samplers.registry import DOCUMENTS, READERS, source_format

DATA = Path(__file__).parents[1] / "data"
GOLDEN = ".golden"
SHOWN = 60


def fixtures(source: str) -> list[Path]:
    """Return the source's fixture files in the order of their names."""
    folder = DATA / source
    return [path for path in sorted(folder.glob("*")) if path.is_file() and path.suffix != GOLDEN]


def golden_of(source: str, path: Path) -> str:
    """Return everything that must not change unnoticed about how a fixture is read and chunked."""
    row = source_format(source)
    try:
        content = row.read(path.read_bytes(), path.name, frozenset())
    except DocumentError as error:
        return f"refused: {error.reason}\n"
    lines = [f"{n} documents left out: {reason}" for reason, n in sorted(content.skipped.items())]
    lines += [f"{n} characters left out: {reason}" for reason, n in sorted(content.left_out.items())]
    lines.append(f"{content.supplied} characters supplied")
    for document in content.documents:
        lines += _document(document, SOURCES.get(source, DOCUMENTS).structural_chunker)
    return "\n".join(lines) + "\n"


def _document(document: Document, chunker_name: str) -> Iterator[str]:
    yield f"\n=== {document.doc_id}"
    for name in ("title", "stratum", "family", "url", "status"):
        yield f"{name}: {getattr(document, name)}"
    yield "--- text"
    yield from (f"  {line}" for line in document.text.split("\n"))
    yield "--- sections"
    for section in document.sections:
        start, end = section.span.start, section.span.end
        yield f"{section.level} {section.kind} [{section.label}] {start}-{end} {_shown(document.text[start:end])}"
    yield f"--- chunks of {chunker_name}"
    for chunk in chunker(chunker_name)(document):
        start, end = chunk.span.start, chunk.span.end
        yield f"{chunk.n_tokens} tokens [{chunk.context}] {start}-{end} {_shown(document.text[start:end])}"


def _shown(text: str) -> str:
    """Return the two ends of a text on one line."""
    line = text.replace("\n", "⏎").replace("\t", "⇥")
    return line if len(line) <= 2 * SHOWN else f"{line[:SHOWN]} … {line[-SHOWN:]}"


def main(sources: list[str]) -> int:
    """Write the goldens of the named sources, of all without a name."""
    for source in sources or READERS:
        suffixes = source_format(source).suffixes
        paths = [path for path in fixtures(source) if path.suffix.lower() in suffixes]
        for path in paths:
            path.with_name(path.name + GOLDEN).write_text(golden_of(source, path), encoding="utf-8")
        print(f"{source}: wrote {len(paths)} {GOLDEN} files to {DATA / source}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
