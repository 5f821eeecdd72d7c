"""What runs in the containers of benchmarks/modal_overhead.py: an encoder that reads nothing and answers at once."""

import os
from functools import cache
from hashlib import sha256

import numpy as np

from runner.eval_set import catalog


class NoOp:
    """Answers with the same unit rows whatever it is sent; tokens are counted as the benchmark counts them."""

    def __init__(self, encoder: str, revision: str, device: str, dtype: str, own: str) -> None:
        self.dim = catalog.encoder(encoder).dim

    def embed(self, batch_id: str, side: str, texts: list[str], forwards: list[int]) -> dict[str, object]:
        """As the app's class answers."""
        data, seal = rows(len(texts), self.dim)
        return {
            "batch_id": batch_id,
            "container": str(os.getpid()),
            "n": len(texts),
            "dim": self.dim,
            "dtype": "<f4",
            "data": data,
            "sha256": seal,
            "tokens": np.array([n_tokens(text) for text in texts], "<i4").tobytes(),
            "seconds": 0.0,
            "facts": {"device": "cpu"},
        }


def fetch(encoder: str, revision: str) -> dict[str, str]:
    """Nothing to download."""
    return {}


def n_tokens(text: str) -> int:
    return len(text) // 4


@cache
def rows(n: int, dim: int) -> tuple[bytes, str]:
    made = np.random.default_rng(7).standard_normal((n, dim)).astype(np.float32)
    data = (made / np.linalg.norm(made, axis=1, keepdims=True)).astype("<f4").tobytes()
    return data, sha256(data).hexdigest()
