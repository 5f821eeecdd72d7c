"""A million vectors of 1024 numbers through the embedding engine onto disk, and opened again, by peak memory.

    python benchmarks/vectors_on_disk.py [ROWS]

The encoder costs next to nothing, so that what is timed and measured is the engine: its plan, its checks, the one
file of rows with its journal, the digests. Needs 4 KB a row of free disk below TMPDIR. The texts themselves, which the
caller holds, are not counted.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np
from measuring import grown_mb, timed
from numpy.typing import NDArray
from sizes import sized

from runner.base.canonical import JSON
from runner.base.records import PromptSide, Vectors
from runner.base.store import Store
from runner.embed.embed_chunks import embed
from runner.embed.encoder import InProcessEncoder
from runner.embed.probe import PARAPHRASES
from runner.eval_set.catalog import EncoderSpec

N_ROWS = sized(1_000_000, 2_000)
DIM = 1024
TEXTS_A_BATCH = 128
N_READ = 1000
WANTED_MB = 300
TOPICS = {sentence: number for number, pair in enumerate(PARAPHRASES) for sentence in pair}


class HashEncoder(InProcessEncoder):
    """A random unit row per text, which its SHA-256 picks: one of many stretches of a table of random numbers."""

    batch_tokens = 2 * TEXTS_A_BATCH
    spec = EncoderSpec("hash", "none/none", "0" * 40, dim=DIM, max_tokens=0)

    def __init__(self) -> None:
        self.noise = np.random.default_rng(0).standard_normal((DIM, 2 * DIM), dtype=np.float32)

    def identity(self) -> dict[str, JSON]:
        """A name is all there is."""
        return {"name": "hash"}

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.int64]:
        """Words."""
        return np.array([1 + text.count(" ") for text in texts], np.int64)

    def encode(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.float32]:
        """Unit rows."""
        rows = np.empty((len(texts), DIM), np.float32)
        for row, text in zip(rows, texts, strict=True):
            number = int.from_bytes(sha256(text.encode()).digest()[:8], "big")
            start = number // DIM % DIM
            row[:] = self.noise[number % DIM, start : start + DIM]
            if text in TOPICS:  # the probe's paraphrases
                row += 4 * self.noise[TOPICS[text], :DIM]
        rows /= np.sqrt(np.vecdot(rows, rows))[:, None]
        return rows


def measured(what: str, call: Callable[[], Vectors]) -> Vectors:
    """What the call returns; its seconds and the growth of peak resident memory are printed."""
    found: list[tuple[float, Vectors]] = []
    grown = grown_mb(lambda: found.append(timed(call)))
    seconds, vectors = found[0]
    print(f"{what}: {seconds:.1f} s, peak memory + {grown:.0f} MB (wanted under {WANTED_MB})", flush=True)
    return vectors


def main() -> None:
    n_rows = int(sys.argv[1]) if len(sys.argv) > 1 else N_ROWS
    texts = [f"chunk {number}" for number in range(n_rows)]
    encoder = HashEncoder()
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))

        def opened() -> Vectors:
            vectors = embed(store, encoder, texts, "document")
            picked = np.sort(np.random.default_rng(1).choice(n_rows, N_READ, replace=False))
            expected = encoder.encode([texts[number] for number in picked.tolist()], "document")
            assert (vectors.rows[picked] == expected).all()
            return vectors

        size = f"{n_rows:,} x {DIM} float32, {n_rows * DIM * 4 / 1e6:,.0f} MB"
        embed(store, encoder, texts[:1], "document")  # the probe, before anything is measured
        landed = measured(f"landing {size}", lambda: embed(store, encoder, texts, "document"))
        assert isinstance(landed.rows, np.memmap)
        del landed
        measured(f"opening them, every byte verified, and reading {N_READ} rows", opened)


if __name__ == "__main__":
    main()
