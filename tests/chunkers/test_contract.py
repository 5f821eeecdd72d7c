"""What every chunker promises, planted wrong one way at a time; plug-ins are held to it at every cut."""

from dataclasses import replace

import pytest

from chunkers.contract import chunk_fault, from_spans
from chunkers.registry import chunker
from runner.base.errors import InputError
from runner.base.records import Document, Span

pytest_plugins = ["tests.support.installed"]

TEXT = "Sec. 1. The quay.\n\nSec. 2. The lamp.\n"
DOCUMENT = Document("d", TEXT, "Quay Act", "all", "d", "")
CHUNKS = from_spans(DOCUMENT, [(0, 17), (19, 36)])


def one(number, **fields):
    return [replace(chunk, **fields) if chunk.index == number else chunk for chunk in CHUNKS]


def renumbered(*chunks):
    return [replace(chunk, index=index) for index, chunk in enumerate(chunks)]


@pytest.mark.parametrize(
    "chunks",
    [
        ["Sec. 1."],
        one(0, doc_id="e"),
        one(1, index=2),
        renumbered(*reversed(CHUNKS)),
        renumbered(CHUNKS[0], *CHUNKS),
        one(1, span=Span(19, 99)),
        renumbered(CHUNKS[0], replace(CHUNKS[1], span=Span(17, 18)), CHUNKS[1]),
        one(0, context="Quay\nAct"),
        one(0, n_tokens=CHUNKS[0].n_tokens + 1),
        CHUNKS[:1],
        one(0, span=Span(1, 17)),
        [],
    ],
    ids=range(12),
)
def test_each_broken_promise_is_found(chunks):
    assert not chunk_fault(DOCUMENT, CHUNKS, 0)
    assert chunk_fault(DOCUMENT, chunks, 0)


def test_a_limit_holds_of_every_chunk():
    longest = max(chunk.n_tokens for chunk in CHUNKS)
    assert not chunk_fault(DOCUMENT, CHUNKS, longest)
    assert chunk_fault(DOCUMENT, CHUNKS, longest - 1)


def test_spans_become_chunks_in_text_order_each_once_and_none_blank():
    assert from_spans(DOCUMENT, [(19, 36), (0, 17), (17, 19), (0, 17)]) == CHUNKS


@pytest.mark.parametrize(
    "body",
    ["return []", "return 7", "1 / 0", "seen.append(0); return from_spans(document, [(0, 9), (len(seen), 36)])"],
)
def test_a_plug_in_that_breaks_it_ends_with_its_name_and_the_documents(site, body):
    source = f"""
from chunkers.contract import from_spans
from chunkers.registry import Row
seen = []
def cut(document):
    {body}
ROW = Row(cut, 0)
"""
    site.install("pse_broken", source, {"chunkers:broken_v1": "pse_broken:ROW"})
    with pytest.raises(InputError, match=r"broken_v1 of pse_broken 0\.1, at d:"):
        chunker("broken_v1")(DOCUMENT)
