"""Our engine with the packaged MiniLM against SentenceTransformer.encode with its defaults, on the same chunks.

The second comparison is with a bare loop of the same encoder over the same forward batches: what the engine costs.
Minima say it where the machine is quiet; elsewhere believe the CPU seconds that the engine spends outside its encoder.

CPU seconds of one thread, best of interleaved rounds; ours includes token counts, checks and the vector file.
Chunks of real bills when the shared corpora are there (PSE_SHARED), of the demo's bills otherwise.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from corpus import bills_folder
from numpy.typing import NDArray
from sizes import sized

from chunkers.registry import chunker
from runner.base.records import PromptSide
from runner.base.store import Store
from runner.embed.batches import TextSet, planned
from runner.embed.embed_chunks import embed
from runner.embed.local_encoder import OnnxEncoder
from runner.embed.probe import probed
from runner.eval_set.catalog import ENCODERS
from samplers.corpus.parse import read_corpus

N_CHUNKS = sized(64, 2)
ROUNDS = sized(3, 1)
WANTED = {"fixed_token_512_50": 1.05, "section_aware_bills_v1": 1.25}
WANTED_OVERHEAD = 0.03


class TimedEncoder(OnnxEncoder):
    """The encoder of the pipeline, which sums up its own CPU seconds."""

    seconds = 0.0

    def token_counts(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.int64]:
        """As its parent's."""
        start = time.process_time()
        counts = super().token_counts(texts, side)
        self.seconds += time.process_time() - start
        return counts

    def encode(self, texts: Sequence[str], side: PromptSide) -> NDArray[np.float32]:
        """As its parent's."""
        start = time.process_time()
        rows = super().encode(texts, side)
        self.seconds += time.process_time() - start
        return rows


class Seconds(NamedTuple):
    """Least CPU seconds of each way, and the least share of ours that is spent outside the encoder."""

    peer: float
    bare: float
    own: float
    outside: float


def chunk_texts(folder: Path, name: str, n: int) -> list[str]:
    """At most n distinct chunks, evenly spread over the folder's documents."""
    split = chunker(name)
    texts = [
        chunk.reading(document) for document in read_corpus(folder, "bills").documents for chunk in split(document)
    ]
    distinct = list(dict.fromkeys(texts))
    return distinct[:: -(-len(distinct) // n)]


def compare(encoder: TimedEncoder, texts: list[str]) -> tuple[Seconds, float]:
    """CPU seconds, and the largest difference of any coordinate between the peer's rows and ours."""
    work = TextSet.of(texts, "document", "forward")
    batches = [batch for batch, _ in planned(encoder, work, encoder.token_counts(work.texts, work.side))]
    rounds, difference = [], 0.0
    for _ in range(ROUNDS):
        peer, peer_seconds = timed(
            lambda: encoder._model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        )
        encoder._kept.clear()  # or the bare loop would find its texts tokenized
        _, bare_seconds = timed(lambda: [encoder.encode(batch.texts, batch.side) for batch in batches])
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder))
            probed(store, encoder)
            encoder.seconds = 0.0
            own, own_seconds = timed(lambda store=store: embed(store, encoder, texts, "document").rows)
            difference = max(difference, float(np.abs(own - peer).max()))
        rounds.append((peer_seconds, bare_seconds, own_seconds, 1 - encoder.seconds / own_seconds))
    return Seconds(*map(min, zip(*rounds, strict=True))), difference


def timed(call: Callable[[], NDArray[np.float32] | list[NDArray[np.float32]]]) -> tuple[NDArray[np.float32], float]:
    """What the call returns as one matrix, and its CPU seconds."""
    start = time.process_time()
    rows = call()
    seconds = time.process_time() - start
    return np.vstack(rows), seconds


def main() -> None:
    folder = bills_folder()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"  # which onnxruntime is given
    encoder = TimedEncoder(ENCODERS["minilm-l6-v2"])
    encoder.encode(["warm up"], "document")
    for name, wanted in WANTED.items():
        texts = chunk_texts(folder, name, N_CHUNKS)
        took, difference = compare(encoder, texts)
        tokens = encoder.token_counts(texts, "document").mean()
        print(
            f"{name}: {took.peer / took.own:.2f}x of SentenceTransformer.encode (wanted {wanted:.2f}x), {len(texts)} "
            f"chunks of {tokens:.0f} tokens from {folder.name}, {took.own:.1f} against {took.peer:.1f} CPU-s, largest "
            f"difference {difference:.1e} (wanted 1e-05)\n"
            f"  {took.own / took.bare - 1:+.1%} over a bare loop of the same encoder over the same forward batches, "
            f"{took.bare:.2f} CPU-s (wanted under {WANTED_OVERHEAD:.0%}); {took.outside:.1%} of ours is not the encoder"
        )


if __name__ == "__main__":
    main()
