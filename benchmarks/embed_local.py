"""Our engine with the packaged MiniLM against SentenceTransformer.encode with its defaults, on the same chunks.

CPU seconds of one thread, best of interleaved rounds; ours includes token counts, checks and the vector file.
"""

import os
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from measuring import bills_folder, fastest, row, sized
from sentence_transformers import SentenceTransformer

from chunkers.registry import chunker
from runner.base.store import Store
from runner.embed.embed_chunks import embed
from runner.embed.local_encoder import encoder_for
from runner.embed.probe import probed
from runner.embed.weights import verified_folder
from runner.eval_set.catalog import ENCODERS
from samplers.corpus.parse import read_corpus

N_CHUNKS = sized(64, 2)
WANTED = {"fixed_token_512_50": "1.05x", "section_aware_bills_v1": "1.25x"}


def chunk_texts(name: str) -> list[str]:
    """Return at most N_CHUNKS distinct chunks, evenly spread over the documents."""
    split = chunker(name)
    documents = read_corpus(bills_folder(), "bills").documents
    distinct = list(dict.fromkeys(chunk.reading(document) for document in documents for chunk in split(document)))
    return distinct[:: -(-len(distinct) // N_CHUNKS)]


def main() -> None:
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"  # which onnxruntime is given
    encoder = encoder_for("minilm-l6-v2")
    model = SentenceTransformer(str(verified_folder(ENCODERS["minilm-l6-v2"])), device="cpu")
    for name, wanted in WANTED.items():
        texts = chunk_texts(name)
        rounds, difference = [], 0.0
        for _ in range(sized(3, 1)):
            took, theirs = fastest(
                lambda texts=texts: model.encode(texts, normalize_embeddings=True), 1, time.process_time
            )
            # A store of its own, or the second round would find the vectors of the first.
            with tempfile.TemporaryDirectory() as folder:
                store = Store(Path(folder))
                probed(store, encoder)
                own, ours = fastest(
                    lambda store=store, texts=texts: np.array(embed(store, encoder, texts, "document").rows),
                    1,
                    time.process_time,
                )
            rounds.append((own, took))
            difference = max(difference, float(np.abs(ours - theirs).max()))
        own, took = map(min, zip(*rounds, strict=True))
        what = f"{len(texts)} chunks of {name} embedded, CPU seconds; SentenceTransformer.encode"
        row(what, f"{own:.1f}", f"{took:.1f}", f"{took / own:.2f}x, vectors within {difference:.0e}", wanted)


if __name__ == "__main__":
    main()
