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
from functools import partial
from pathlib import Path

from measuring import row, sized

from chunkers.fixed_token import fixed_token
from chunkers.registry import CHUNKERS, Row
from runner.base.records import DenseCell
from runner.base.store import Store
from runner.embed.backends import LocalBackend
from runner.evening.embed import bring_up
from runner.substrate.index import fingerprint_of
from runner.substrate.sqlite_index import SqliteIndex
from samplers.corpus.parse import read_corpus

SIZES = sized((100_000, 1_000_000), (300, 600))
"""Chunks of which the peaks are compared."""
PACED = sized(20_000, 300)
"""Chunks of the length of production's, over which the pace is taken."""
EACH = sized(100, 30)
"""Chunks of a document."""
SHORT, WHOLE = 32, 256
"""Tokens of a chunk: short ones for the peaks, whose texts are on the disk in any case."""
CELL = DenseCell("minilm-static-384", "fixed_token_256_25")
WORDS_A_TOKEN = 0.32


def write(folder: Path, n_chunks: int, tokens: int) -> int:
    """Fill a folder with documents of about so many chunks in all, of so many tokens; return their bytes."""
    letters, rng = "aeioulnrst", random.Random(1)
    lexicon = ["".join(rng.choices(letters, k=rng.randint(3, 8))) for _ in range(20_000)]
    n_bytes = 0
    for number in range(n_chunks // EACH):
        text = f"# Act {number}\n\n" + " ".join(rng.choices(lexicon, k=int(EACH * tokens * WORDS_A_TOKEN))) + "\n"
        n_bytes += (folder / f"act-{number:06d}.md").write_text(text)
    return n_bytes


def embed(folder: Path, work: Path, tokens: int) -> None:
    """Print what one run over a folder took: seconds, those of the CPU, chunks, and the peak of resident memory."""
    started, backend = time.perf_counter(), LocalBackend()
    CHUNKERS[CELL.chunker] = Row(partial(fixed_token, size=tokens, overlap=tokens // 10), limit=tokens)
    encoder = backend.encoder(CELL.encoder)
    now = fingerprint_of("demo", 1, "0" * 64, CELL, encoder)
    path = work / "index.db"
    reading = read_corpus(folder, "documents")
    done = bring_up(SqliteIndex(path, "demo"), path, now, reading, encoder, backend, Store(work / "cache"), prune=False)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(time.perf_counter() - started, time.process_time(), done.chunks, peak, path.stat().st_size)


def measured(n_chunks: int, tokens: int) -> float:
    """Print how long so many chunks take, and return the peak of memory in MB."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("PSE_BENCH_FOLDER")) as name:
        folder = Path(name) / "documents"
        folder.mkdir()
        n_bytes = write(folder, n_chunks, tokens)
        command = [sys.executable, __file__, "one", str(folder), name, str(tokens)]
        environment = os.environ | {"PER_SOURCE_EVAL_CACHE": f"{name}/cache"}
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment).stdout
    seconds, busy, chunks, peak, size = map(float, said.split())
    pace = f"{n_bytes / 1e6 / busy:.2f} MB a CPU second, {n_bytes / 1e6 / seconds:.2f} MB/s; {size / 1e6:,.0f} MB"
    row(f"{chunks:,.0f} chunks of {tokens} tokens indexed with the static encoder", pace)
    return peak


def main() -> None:
    measured(PACED, WHOLE)
    few, many = (measured(n_chunks, SHORT) for n_chunks in SIZES)
    row(
        "the same, peak memory in MB at both sizes", f"{many:,.0f}", f"{few:,.0f}", f"{many / few:.2f}x", "at most 1.1x"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["one"]:
        embed(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
