"""An encoder without weights that passes the probe, and can be told to misbehave in one way."""

import hashlib
import random
import time
from functools import cache

import numpy as np

from runner.embed.encoder import InProcessEncoder
from runner.embed.probe import PARAPHRASES
from runner.eval_set.catalog import EncoderSpec

TOPICS = {sentence: number for number, pair in enumerate(PARAPHRASES) for sentence in pair}
WORDS = ["grant", "bridge", "veteran", "smoke", "cod", "bank", "report", "state", "river", "court", "budget", "tax"]
TEXTS = [" ".join(random.Random(seed).choices(WORDS, k=5 + seed % 40)) + f" {seed}" for seed in range(60)]


@cache
def direction(word, dim):
    """A random vector (dim,), always the same of one word."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(np.random.PCG64(seed)).standard_normal(dim)


def _noise(word):
    return direction(word, 16).astype(np.float32)


class FakeEncoder(InProcessEncoder):
    """Mean of one random vector a word, truncated at 32 words; `lie` tampers with rows of texts that hold `lie_on`."""

    batch_tokens = 64

    def __init__(self, query_prompt="", max_tokens=32, lie=None, lie_on="", seconds=0.0):
        self.spec = EncoderSpec(
            name="fake", model="fake/fake", revision="0" * 40, dim=16, max_tokens=max_tokens, query_prompt=query_prompt
        )
        self.lie, self.lie_on, self.seconds = lie, lie_on, seconds
        self.encoded = []

    def identity(self):
        return {"name": "fake", "query_prompt": self.spec.query_prompt, "max_tokens": self.spec.max_tokens}

    def _words(self, text, side):
        return (self.spec.prompt(side) + text).split()

    def token_counts(self, texts, side):
        return np.array([len(self._words(text, side)) for text in texts], dtype=np.int64)

    def encode(self, texts, side):
        time.sleep(self.seconds)
        self.encoded.append(list(texts))
        rows = np.array([self._row(text, side) for text in texts], dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        # The neighbours in a batch change the last bits, as a matrix product does.
        rows *= np.float32(1 + 1e-7 * (len(texts) % 3))
        if self.lie is not None and any(self.lie_on in text for text in texts):
            return self.lie(rows)
        return rows

    def _row(self, text, side):
        words = self._words(text, side)[: self.spec.max_tokens or None]
        row = np.mean([_noise(word) for word in words], axis=0) if words else _noise("")
        return row + 4 * _noise(f"topic {TOPICS[text]}") if text in TOPICS else row
