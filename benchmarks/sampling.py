"""Clustering near-duplicates against datasketch's plain loop over the same runs of words; memory of a whole sampling.

The peer is MinHash.update_batch and MinHashLSH.query on the first documents, without verification of what it finds;
the ratio compares rates. Sampling is of made bills in a ZIP, in a process of its own, whose peak counts, and that of
the largest process that read for it. `sampling.py N` samples N bills alone.
"""

import random
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

from datasketch import MinHash, MinHashLSH
from measuring import fastest, row, sized

from runner.base.records import Document
from runner.eval_set.catalog import source
from runner.eval_set.corpus import sample_of
from runner.eval_set.shapes.plan import Sample
from samplers.corpus.near_duplicates import N_SLOTS, SHINGLE, THRESHOLD, near_duplicates

N_DOCUMENTS, N_PEER = sized((20_000, 2_000), (40, 20))
N_BILLS = sized((20_000, 60_000), (40,))
WORDS = [f"word{n}" for n in range(30_000)]


def documents() -> Iterator[Document]:
    """Yield texts of about 5 kB; every tenth is an earlier one with eight words changed."""
    rng = random.Random(2)
    words = ["first"] * 560
    for number in range(N_DOCUMENTS):
        if number % 10:
            # A square keeps some words frequent, as in any language.
            words = [WORDS[int(len(WORDS) * rng.random() ** 2)] for _ in range(560)]
        else:
            words = list(words)
            for place in rng.sample(range(len(words)), 8):
                words[place] = f"changed{number}"
        yield Document(f"d{number:05}", " ".join(words), "title", "stratum", str(number), "")


def plain_loop(of: list[Document]) -> None:
    index = MinHashLSH(THRESHOLD, N_SLOTS)
    for document in of:
        words = document.text.lower().split()
        signature = MinHash(N_SLOTS, seed=1)
        signature.update_batch([" ".join(words[i : i + SHINGLE]).encode() for i in range(len(words) - SHINGLE + 1)])
        index.query(signature)
        index.insert(document.doc_id, signature)


def write_bills(path: Path, n: int) -> None:
    """Write a ZIP of bills of 5 kB of text, of which every tenth repeats the one before it but for its number."""
    rng, sections = random.Random(3), ""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number in range(1, n + 1):
            if number % 10:
                texts = (" ".join(WORDS[int(len(WORDS) * rng.random() ** 2)] for _ in range(50)) for _ in range(12))
                sections = "".join(
                    f"<section><enum>{k}.</enum><header>Part {k}</header><text>{text}</text></section>"
                    for k, text in enumerate(texts, start=1)
                )
            form = f"<form><congress>117th CONGRESS</congress><legis-num>H. R. {number}</legis-num></form>"
            bill = f"<bill>{form}<legis-body>{sections}</legis-body></bill>"
            archive.writestr(f"BILLS-117hr{number}ih.xml", bill)


def sample(n: int) -> None:
    """Print seconds of sampling n made bills, and peak MB of this process and of the largest that read for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bills.zip"
        write_bills(path, n)
        started = time.perf_counter()
        sample_of(source("bills"), Sample(size=750, seed=2026), path)
        peaks = (resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        print(time.perf_counter() - started, *peaks)


def main() -> None:
    corpus = list(documents())
    texts = {document.doc_id: document.text for document in corpus}
    own = fastest(lambda: near_duplicates(texts), 1)[0]
    peer = fastest(lambda: plain_loop(corpus[:N_PEER]), 1)[0] * N_DOCUMENTS / N_PEER
    what = f"near-duplicates of {N_DOCUMENTS:,} documents clustered, seconds; datasketch's plain loop"
    row(what, f"{own:.1f}", f"{peer:.1f}", f"{peer / own:.1f}x", "60 s")
    for n in N_BILLS:
        done = subprocess.run([sys.executable, __file__, str(n)], capture_output=True, text=True, check=True)
        seconds, own, reader = map(float, done.stdout.split())
        row(
            f"sampling {n:,} made bills: peak MB; of each process that reads; seconds",
            f"{own:.0f}",
            f"{reader:.0f}",
            f"{seconds:.0f}",
            "400 MB",
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sample(int(sys.argv[1]))
    else:
        main()
