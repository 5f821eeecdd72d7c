"""The sum of words and meaning against its two arms alone, over the chunks of bills under vectors drawn at random."""

import time
from dataclasses import replace
from itertools import count, islice

import numpy as np
from measuring import bills_folder, fastest, row, sized

from runner.embed.chunk_corpus import chunk_corpus
from runner.retrieve.bm25 import bm25_run
from runner.retrieve.ranking import Retrieval, chunk_table
from runner.retrieve.retrieve import DenseArm, dense_run
from runner.retrieve.sums import sum_run
from samplers.corpus.parse import read_corpus

N_DOCUMENTS, N_QUERIES, DIM = sized((400, 40, 384), (10, 3, 16))


def main() -> None:
    bills = read_corpus(bills_folder(), "bills").documents
    # A folder of fewer bills is read again under other ids.
    again = islice(((n, bill) for n in count() for bill in bills), N_DOCUMENTS)
    documents = [replace(bill, doc_id=f"{bill.doc_id}-{n}") for n, bill in again]
    chunks = chunk_corpus(documents, "fixed_token_256_25")
    by_id = {document.doc_id: document for document in documents}
    texts = [chunk.reading(by_id[chunk.doc_id]) for chunk in chunks]
    queries = {document.doc_id: document.title for document in documents[:N_QUERIES]}
    rng = np.random.default_rng(1)
    vectors, asked = (rng.standard_normal((n, DIM), dtype=np.float32) for n in (len(chunks), len(queries)))
    for rows in (vectors, asked):
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    arm = DenseArm(list(queries), asked, chunks, vectors, chunk_table(chunks))

    def words() -> Retrieval:
        return bm25_run("words", "bm25", queries, chunks, texts)

    def both() -> Retrieval:
        words()
        return dense_run("meaning", arm)

    own, peer = (fastest(call, clock=time.process_time)[0] for call in (lambda: sum_run("sum", words(), arm), both))
    what = f"sum of {len(queries)} queries over {len(chunks):,} chunks of {len(documents)} bills, CPU s; its two arms"
    row(what, f"{own:.3f}", f"{peer:.3f}", f"{own / peer:.2f} times", "1.2 times")


if __name__ == "__main__":
    main()
