"""Time and memory of reading and chunking every source, against the least that its format costs.

    python benchmarks/read_sources.py [FOLDER OF CORPORA]

Readers are timed over all files of FOLDER/<source>, by default the shared corpora. The peer is a bare lxml parse for
XML, decoding and html.unescape for htm, json.loads and decoding for the rest; PDF has none. A speed of 1.00x means that
reading costs nothing beside the peer; wanted are 0.50x for XML and 20 MB/s for htm. Peak memory is of a process of its
own that reads the largest file, beyond what it had before, as a multiple of that file; wanted is less than 8.
Chunking is by the source's structural chunker, with the encodings of all texts at hand, so that tokenisation is not
timed; wanted are 30 MB/s of text. The last column is a whole folder read by one process against one per processor, by
the clock; wanted is 1.5x on two, and a folder of less than 20 MB is read by one.
"""

import html
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from unittest.mock import patch

from corpus import CORPORA
from lxml import etree
from measuring import fastest, grown_mb
from sizes import sized

from chunkers import tokens
from chunkers.registry import chunker
from runner.base.errors import DocumentError
from runner.base.records import Document
from runner.eval_set.catalog import SOURCES
from samplers.corpus import shares
from samplers.corpus.parse import read_corpus
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
    """The documents of all files that can be read."""
    read = source_format(source).read
    documents: list[Document] = []
    for data, name in files:
        try:
            documents += read(data, name, frozenset()).documents
        except DocumentError:
            continue
    return documents


def peer_seconds(files: Files) -> float:
    """Of the peer on the files that have one; 0 if none has."""
    work = [(PEERS[Path(name).suffix.lower()], data) for data, name in files if Path(name).suffix.lower() in PEERS]
    return fastest(lambda: [peer(data) for peer, data in work], ROUNDS, time.process_time)[0] if work else 0.0


def peak_times(source: str, paths: Sequence[Path]) -> float:
    """Peak memory of reading the largest file as a multiple of its size, from a child process."""
    by_size = sorted(paths, key=lambda path: path.stat().st_size)
    command = [sys.executable, __file__, "--peak", source, str(by_size[len(by_size) // 4]), str(by_size[-1])]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def print_peak(source: str, small: Path, largest: Path) -> None:
    """The child's part: modules and tables are loaded by a first reading of a small file."""
    read_all(source, [(small.read_bytes(), small.name)])
    data = largest.read_bytes()
    print(1024**2 * grown_mb(lambda: read_all(source, [(data, largest.name)])) / len(data))


def chunk_rate(source: str, documents: Sequence[Document]) -> float:
    """MB of text a second."""
    split = chunker(SOURCES[source].structural_chunker)
    for document in documents:
        split(document)
    seconds = fastest(lambda: [split(document) for document in documents], ROUNDS, time.process_time)[0]
    return sum(len(document.text) for document in documents) / 1e6 / seconds


def shared_out(source: str, folder: Path) -> float:
    """How many times as fast a folder is read by a process per processor as by one."""

    def seconds() -> float:
        return fastest(lambda: read_corpus(folder, source), ROUNDS, time.perf_counter)[0]

    many = seconds()
    with patch.object(shares, "_n_processors", lambda: 1):
        return seconds() / many


def main(folder: Path) -> None:
    tokens._encode = cache(tokens._encode)
    head = (
        f"{'source':36} {'files':>5} {'MB':>6} {'MB/s':>6} {'of peer':>8} {'peak':>6} {'chunks MB/s':>12} {'shared':>7}"
    )
    print(head)
    for source in sized(list(SAMPLERS), list(SAMPLERS)[:2]):
        suffixes = source_format(source).suffixes
        paths = [path for path in sorted((folder / source).rglob("*")) if path.name.lower().endswith(suffixes)]
        files = [(path.read_bytes(), path.name) for path in paths]
        if not files:
            print(f"{source:36}     no file in {folder / source}")
            continue
        megabytes = sum(len(data) for data, _ in files) / 1e6
        seconds = fastest(lambda source=source, files=files: read_all(source, files), ROUNDS, time.process_time)[0]
        peer = peer_seconds(files)
        ratio = f"{peer / seconds:7.2f}x" if peer else "       -"
        peak = peak_times(source, paths)
        rate = chunk_rate(source, read_all(source, files))
        print(
            f"{source:36} {len(files):5} {megabytes:6.1f} {megabytes / seconds:6.1f} {ratio} {peak:5.1f}x {rate:12.1f}"
            f" {shared_out(source, folder / source):5.2f}x",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        print_peak(sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))
    else:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else CORPORA)
