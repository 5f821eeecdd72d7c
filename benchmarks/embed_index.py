"""A decision carried out over a million chunks with the static encoder: peak memory beside a tenth of them, and pace.

Each size runs in a process of its own, over documents of made-up words in files of Markdown.
"""

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import row, sized

from runner.base.records import DenseCell
from runner.base.store import Store
from runner.embed.backends import LocalBackend
from runner.evening.embed import bring_up
from runner.substrate.index import fingerprint_of
from runner.substrate.sqlite_index import SqliteIndex
from samplers.corpus.parse import read_corpus

SIZES = sized((100_000, 1_000_000), (300, 600))
EACH = sized(100, 30)
"""Chunks of a document."""
CELL = DenseCell("minilm-static-384", "fixed_token_256_25")
WORDS_A_CHUNK = 83


def write(folder: Path, n_chunks: int) -> int:
    """Fill a folder with documents of so many chunks in all; return their bytes."""
    letters, rng = "aeioulnrst", random.Random(1)
    lexicon = ["".join(rng.choices(letters, k=rng.randint(3, 8))) for _ in range(20_000)]
    n_bytes = 0
    for number in range(n_chunks // EACH):
        text = f"# Act {number}\n\n" + " ".join(rng.choices(lexicon, k=EACH * WORDS_A_CHUNK)) + "\n"
        n_bytes += (folder / f"act-{number:06d}.md").write_text(text)
    return n_bytes


def embed(folder: Path, work: Path) -> None:
    """Print what one run over a folder took: seconds, chunks and the peak of resident memory in MB."""
    started, backend = time.perf_counter(), LocalBackend()
    encoder = backend.encoder(CELL.encoder)
    now = fingerprint_of("demo", 1, "0" * 64, CELL, encoder)
    path = work / "index.db"
    reading = read_corpus(folder, "documents")
    read = time.perf_counter() - started
    done = bring_up(SqliteIndex(path, "demo"), path, now, reading, encoder, backend, Store(work / "cache"), prune=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(read, time.perf_counter() - started, done.chunks, peak, path.stat().st_size)


def main() -> None:
    peaks = []
    for n_chunks in SIZES:
        with tempfile.TemporaryDirectory(dir=os.environ.get("PSE_BENCH_FOLDER")) as name:
            folder = Path(name) / "documents"
            folder.mkdir()
            n_bytes = write(folder, n_chunks)
            command = [sys.executable, __file__, "one", str(folder), name]
            environment = os.environ | {"PER_SOURCE_EVAL_CACHE": f"{name}/cache"}
            said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
        read, seconds, chunks, peak, size = map(float, said.split())
        peaks.append(peak)
        pace = f"{seconds:,.0f} s ({read:,.0f} s reading), {n_bytes / 1e6 / seconds:.2f} MB/s, {size / 1e9:.2f} GB"
        row(f"{chunks:,.0f} chunks indexed by the static encoder", pace)
    row("peak memory, MB", f"{peaks[1]:,.0f}", f"{peaks[0]:,.0f}", f"{peaks[1] / peaks[0]:.2f}x", "at most 1.1x")


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        embed(Path(sys.argv[2]), Path(sys.argv[3]))
    else:
        main()
