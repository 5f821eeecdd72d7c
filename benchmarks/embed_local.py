"""Our engine with the packaged MiniLM against SentenceTransformer.encode with its defaults, on the same chunks.

CPU seconds of one thread, best of interleaved rounds; ours includes token counts, checks, shards and the store.
Chunks of real bills when the shared corpora are there (PSE_SHARED), of the demo's bills otherwise.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from chunkers.registry import chunker  # noqa: E402 - the path comes first
from runner.embed_chunks import embed, probed  # noqa: E402
from runner.local_encoder import TransformerEncoder, encoder_for  # noqa: E402
from runner.store import Store  # noqa: E402
from samplers.folder import read_folder  # noqa: E402

TARGETS = {"fixed_token_512_50": 1.05, "section_aware_bills_v1": 1.25}


def chunk_texts(folder: Path, name: str, n: int) -> list[str]:
    """At most n distinct chunks, evenly spread over the folder's documents."""
    split = chunker(name)
    texts = [
        chunk.reading(document) for document in read_folder(folder, "bills").documents for chunk in split(document)
    ]
    distinct = list(dict.fromkeys(texts))
    return distinct[:: -(-len(distinct) // n)]


def compare(encoder: TransformerEncoder, texts: list[str], rounds: int) -> tuple[float, float, float]:
    """Best CPU seconds of the peer and of ours, and the largest difference of any coordinate."""
    peer_seconds, own_seconds, difference = [], [], 0.0
    model = encoder._model
    for _ in range(rounds):
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=64, help="chunks a chunker (default: 64)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds (default: 3)")
    options = parser.parse_args()
    shared = Path(os.environ.get("PSE_SHARED", CHECKOUT.parent / "shared")) / "corpora" / "bills"
    folder = shared if shared.is_dir() else CHECKOUT / "eval-sets" / "demo" / "corpus"
    import torch

    torch.set_num_threads(1)
    encoder = encoder_for("minilm-l6-v2")
    encoder.encode(["warm up"], "document")
    failed = False
    for name, target in TARGETS.items():
        texts = chunk_texts(folder, name, options.chunks)
        peer, own, difference = compare(encoder, texts, options.rounds)
        good = peer / own >= target and difference < 1e-5
        failed |= not good
        tokens = encoder.token_counts(texts, "document").mean()
        print(
            f"embed_local {name}: {peer / own:.2f}x of SentenceTransformer.encode (target {target:.2f}x), "
            f"{len(texts)} chunks of {tokens:.0f} tokens from {folder.name}, {own:.1f} against {peer:.1f} CPU-s, "
            f"largest difference {difference:.1e}: {'ok' if good else 'MISSED'}"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
