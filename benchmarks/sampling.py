"""Seconds of drawing a sample from 60 MB of bills, and of clustering 20,000 near-duplicates against datasketch.

    python benchmarks/sampling.py

The bills are made for the purpose, 10,000 of about 6 kB; drawing is reading, clustering and sampling. Wanted are 60 s
each. The peer of the clustering is datasketch's plain loop, MinHash.update_batch and MinHashLSH.query over the same
runs of words, on the first 2,000 documents, without verification of what it finds; the ratio compares rates.
"""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from datasketch import MinHash, MinHashLSH
from measuring import peak_mb, timed
from sizes import sized

from runner.base.records import Document
from samplers.corpus.near_duplicates import N_SLOTS, SHINGLE, THRESHOLD, members, near_duplicates
from samplers.corpus.parse import read_corpus
from samplers.corpus.sampling import stratified_sample

N_BILLS, N_DOCUMENTS, N_PEER = sized((10_000, 20_000, 2_000), (20, 40, 20))
WORDS = [f"word{n}" for n in range(30_000)]


def paragraph(rng: random.Random, n: int) -> str:
    # A square keeps some words frequent, as in any language.
    return " ".join(WORDS[int(len(WORDS) * rng.random() ** 2)] for _ in range(n))


def write_bills(folder: Path) -> float:
    """Megabytes written: bills of ten sections."""
    rng = random.Random(1)
    n_bytes = 0
    for number in range(N_BILLS):
        sections = "".join(
            f"<section><enum>{n}.</enum><header>Part {n}</header><text>{paragraph(rng, 55)}</text></section>"
            for n in range(10)
        )
        title = f"<title>{110 + number % 9} HR {number} IH: Act {number}</title>"
        metadata = f"<metadata><dublinCore>{title}</dublinCore></metadata>"
        content = f"<bill>{metadata}<legis-body>{sections}</legis-body></bill>".encode()
        n_bytes += len(content)
        (folder / f"{number}.xml").write_bytes(content)
    return n_bytes / 1e6


def sampled(folder: Path) -> str:
    """What drawing took, in parts."""
    reading, documents = timed(lambda: read_corpus(folder, "bills").documents)
    grouping, clusters = timed(lambda: near_duplicates(documents))
    drawing, _ = timed(lambda: stratified_sample(documents, 750, 2026, clusters=clusters))
    parts = f"reading {reading:.1f}, clustering {grouping:.1f}, drawing {drawing:.1f}"
    return f"{reading + grouping + drawing:.1f} s ({parts})"


def documents() -> Iterator[Document]:
    """Texts of about 5 kB; every tenth is an earlier one with eight words changed."""
    rng = random.Random(2)
    texts: list[list[str]] = []
    for number in range(N_DOCUMENTS):
        words = paragraph(rng, 560).split() if number % 10 else list(texts[-1]) if texts else ["first"] * 560
        if number % 10 == 0:
            for place in rng.sample(range(len(words)), 8):
                words[place] = f"changed{number}"
        texts.append(words)
        yield Document(f"d{number:05}", " ".join(words), "title", "stratum", str(number), "")


def plain_loop(of: list[Document]) -> int:
    """How many documents datasketch finds like an earlier one."""
    index = MinHashLSH(THRESHOLD, N_SLOTS)
    n_found = 0
    for document in of:
        words = document.text.lower().split()
        signature = MinHash(N_SLOTS, seed=1)
        signature.update_batch([" ".join(words[i : i + SHINGLE]).encode() for i in range(len(words) - SHINGLE + 1)])
        n_found += bool(index.query(signature))
        index.insert(document.doc_id, signature)
    return n_found


def main() -> None:
    clustering(list(documents()))
    with tempfile.TemporaryDirectory() as folder:
        megabytes = write_bills(Path(folder))
        print(f"{megabytes:.0f} MB of bills sampled in {sampled(Path(folder))}")


def clustering(corpus: list[Document]) -> None:
    before = peak_mb()
    seconds, clusters = timed(lambda: near_duplicates(corpus))
    grown = peak_mb() - before
    megabytes = sum(len(document.text) for document in corpus) / 1e6
    print(f"{len(corpus)} documents, {megabytes:.0f} MB, clustered in {seconds:.1f} s, {grown} MB more memory")
    n_found = sum(len(ids) - 1 for ids in members(clusters))
    peer = timed(lambda: plain_loop(corpus[:N_PEER]))[0] * N_DOCUMENTS / N_PEER
    print(f"{n_found} like an earlier one; datasketch's plain loop takes {peer / seconds:.1f}x the time")


if __name__ == "__main__":
    main()
