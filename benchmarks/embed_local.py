"""Our engine with the packaged MiniLM against SentenceTransformer.encode with its defaults, on the same chunks.

CPU seconds of one thread, best of interleaved rounds; ours includes token counts, checks, shards and the store.
Chunks of real bills when the shared corpora are there (PSE_SHARED), of the demo's bills otherwise.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from corpus import bills_folder

from chunkers.registry import chunker
from runner.embed_chunks import embed, probed
from runner.local_encoder import TransformerEncoder, encoder_for
from runner.store import Store
from samplers.reading import read_corpus

N_CHUNKS = 64
ROUNDS = 3
WANTED = {"fixed_token_512_50": 1.05, "section_aware_bills_v1": 1.25}


def chunk_texts(folder: Path, name: str, n: int) -> list[str]:
    """At most n distinct chunks, evenly spread over the folder's documents."""
    split = chunker(name)
    texts = [
        chunk.reading(document) for document in read_corpus(folder, "bills").documents for chunk in split(document)
    ]
    distinct = list(dict.fromkeys(texts))
    return distinct[:: -(-len(distinct) // n)]


def compare(encoder: TransformerEncoder, texts: list[str]) -> tuple[float, float, float]:
    """Best CPU seconds of the peer and of ours, and the largest difference of any coordinate."""
    peer_seconds, own_seconds, difference = [], [], 0.0
    model = encoder._model
    for _ in range(ROUNDS):
        start = time.process_time()
        peer = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
        peer_seconds.append(time.process_time() - start)
        with tempfile.TemporaryDirectory() as folder:
            store = Store(Path(folder))
            probed(store, encoder)
            start = time.process_time()
            own = embed(store, encoder, texts, "document").rows
            own_seconds.append(time.process_time() - start)
            difference = max(difference, float(np.abs(own - peer).max()))
    return min(peer_seconds), min(own_seconds), difference


def main() -> None:
    folder = bills_folder()
    torch.set_num_threads(1)
    encoder = encoder_for("minilm-l6-v2")
    encoder.encode(["warm up"], "document")
    for name, wanted in WANTED.items():
        texts = chunk_texts(folder, name, N_CHUNKS)
        peer, own, difference = compare(encoder, texts)
        tokens = encoder.token_counts(texts, "document").mean()
        print(
            f"{name}: {peer / own:.2f}x of SentenceTransformer.encode (wanted {wanted:.2f}x), {len(texts)} chunks of "
            f"{tokens:.0f} tokens from {folder.name}, {own:.1f} against {peer:.1f} CPU-s, largest difference "
            f"{difference:.1e} (wanted 1e-05)"
        )


if __name__ == "__main__":
    main()
