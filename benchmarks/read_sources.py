"""Reading and chunking every source, against the least that its format costs, and peak memory of reading.

Readers are timed over all files of PSE_SHARED's corpora. The peer is a bare lxml parse for XML, decoding and
html.unescape for htm, json.loads and decoding for the rest. Peak memory is of the largest file, as a multiple of its
size. Chunking is by the source's structural chunker, with the encodings of all texts at hand.
"""

import html
import json
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from lxml import etree
from measuring import SHARED, fastest, grown_mb, row, sized

from chunkers import tokens
from chunkers.registry import chunker
from runner.base.errors import DocumentError
from runner.base.records import Document
from runner.eval_set.catalog import SOURCES
from samplers.registry import SAMPLERS, source_format

ROUNDS = sized(3, 1)

Files = Sequence[tuple[bytes, str]]


def parse(data: bytes) -> object:
    return etree.fromstring(data, etree.XMLParser(load_dtd=False, no_network=True, resolve_entities=False))


def unescape(data: bytes) -> object:
    return html.unescape(data.decode("utf-8", errors="replace"))


def decode(data: bytes) -> object:
    return data.decode("utf-8", errors="replace")


PEERS: dict[str, Callable[[bytes], object]] = {
    ".xml": parse,
    ".htm": unescape,
    ".html": unescape,
    ".json": json.loads,
    ".md": decode,
    ".txt": decode,
}


def read_all(source: str, files: Files) -> list[Document]:
    """Return the documents of all files that can be read."""
    read = source_format(source).read
    documents: list[Document] = []
    for data, name in files:
        try:
            documents += read(data, name, frozenset()).documents
        except DocumentError:
            continue
    return documents


def main() -> None:
    # Encodings at hand, so that chunking is timed and not the tokenizer.
    tokens._encode = cache(tokens._encode)
    for source in sized(list(SAMPLERS), list(SAMPLERS)[:2]):
        folder = SHARED / "corpora" / source
        suffixes = source_format(source).suffixes
        paths = [path for path in sorted(folder.rglob("*")) if path.name.lower().endswith(suffixes)]
        files = [(path.read_bytes(), path.name) for path in paths]
        if not files:
            row(f"{source}: no file in {folder}", "not measured")
            continue
        size = sum(len(data) for data, _ in files) / 1e6
        own, documents = fastest(lambda s=source, f=files: read_all(s, f), ROUNDS, time.process_time)
        work = [(PEERS[Path(name).suffix.lower()], data) for data, name in files if Path(name).suffix.lower() in PEERS]
        peer = fastest(lambda work=work: [call(data) for call, data in work], ROUNDS, time.process_time)[0]
        row(
            f"reading {len(files)} files of {source}, MB/s; a bare parse",
            f"{size / own:.1f}",
            f"{size / peer:.1f}",
            f"{peer / own:.2f}x",
            "0.5x",
        )
        largest = max(files, key=lambda file: len(file[0]))
        grown = grown_mb(lambda s=source, file=largest: read_all(s, [file])) * 1024**2 / len(largest[0])
        row("peak memory of reading the largest of them, of its size", f"{grown:.1f}x", "", "", "8x")
        split = chunker(SOURCES[source].structural_chunker)
        # Once before it is timed, which fills the encodings.
        for document in documents:
            split(document)
        taken = fastest(lambda s=split, d=documents: [s(document) for document in d], ROUNDS, time.process_time)[0]
        rate = sum(len(document.text) for document in documents) / 1e6 / taken
        row("chunking them without tokenising, MB/s of text", f"{rate:.0f}", "", "", "30")


if __name__ == "__main__":
    main()
