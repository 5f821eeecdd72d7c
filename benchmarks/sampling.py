"""Clustering near-duplicates against datasketch's plain loop over the same runs of words.

The peer is MinHash.update_batch and MinHashLSH.query on the first documents, without verification of what it finds;
the ratio compares rates.
"""

import random
from collections.abc import Iterator

from datasketch import MinHash, MinHashLSH
from measuring import fastest, row, sized

from runner.base.records import Document
from samplers.corpus.near_duplicates import N_SLOTS, SHINGLE, THRESHOLD, near_duplicates

N_DOCUMENTS, N_PEER = sized((20_000, 2_000), (40, 20))
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


def main() -> None:
    corpus = list(documents())
    texts = {document.doc_id: document.text for document in corpus}
    own = fastest(lambda: near_duplicates(texts), 1)[0]
    peer = fastest(lambda: plain_loop(corpus[:N_PEER]), 1)[0] * N_DOCUMENTS / N_PEER
    what = f"near-duplicates of {N_DOCUMENTS:,} documents clustered, seconds; datasketch's plain loop"
    row(what, f"{own:.1f}", f"{peer:.1f}", f"{peer / own:.1f}x", "60 s")


if __name__ == "__main__":
    main()
