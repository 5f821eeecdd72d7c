"""Every cause of a miss, planted in a made set, is named right; and in their order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import Arms, Chunk, Hit, Run, Span, Vectors
from runner.decide.misses import FIRST, cause, joined, same_texts
from runner.decide.ranked_lists import ranked_lists
from runner.embed.chunk_health import unread_spans
from runner.eval_set.shapes.corpus import CorpusRow
from runner.eval_set.shapes.lists import Cause
from tests.decide.test_ranked_lists import label

DENSE, SPARSE = "minilm-l6-v2 x fixed_token_512_50", "bm25 x whole_doc"
SUM = "sum(bm25,minilm-l6-v2) x fixed_token_512_50"
FUSED, RERANKED = "rrf(bm25,minilm-l6-v2) x fixed_token_512_50", "bm25>minilm-l6-v2 x fixed_token_512_50"
OTHERS = [f"other-{number:02}" for number in range(30)]
COPIES = [f"copy-{number:02}" for number in range(12)]
WANTED = ("found", "lost", "crowded", "hidden", "low", "gone")


def row(doc_id, family="", digest="", n_chars=1000):
    named = (digest or doc_id).encode().hex()[:64].ljust(64, "0")
    return CorpusRow(doc_id=doc_id, url="", sha256=named, stratum="", family=family or doc_id, n_chars=n_chars)


CORPUS = [
    *(row(name) for name in (*OTHERS, *WANTED)),
    *(row(name, family="a bill", n_chars=1000 + 5 * number) for number, name in enumerate(COPIES)),
]


def run(cell, *doc_ids):
    return Run(cell, {"q1": tuple(Hit(name, 1 - place / 200, Span(0, 500)) for place, name in enumerate(doc_ids))})


RUNS = {
    # Twelve versions of one bill leave room for nothing: six texts stand above what is crowded out.
    DENSE: run(DENSE, "found", *OTHERS[:4], *COPIES, "crowded", *OTHERS[4:], "hidden", "low"),
    SPARSE: run(SPARSE, *OTHERS[:5], "lost", *OTHERS[5:], "found"),
    FUSED: run(FUSED, "found", *OTHERS, "hidden", "lost"),
    RERANKED: run(RERANKED, *OTHERS, "lost", "found"),
}
UNREAD = {DENSE: {"hidden": [[600, 1000]]}, FUSED: {"hidden": [[600, 1000]]}}
LABELS = [label(name, 3, spans=[[550, 900]] if name == "hidden" else [[0, 90]]) for name in WANTED]


def test_five_planted_causes_are_each_named_right():
    qrels = {"q1": dict.fromkeys(WANTED, 3)}
    made = ranked_lists(["q1"], RUNS, qrels, LABELS, CORPUS, depth=10, relevant_grade=2, unread=UNREAD)
    names = [made.documents[pair.document].doc_id for pair in made.queries[0].documents]
    told = {
        cell: {names[place]: why for why, places in by_cause.items() for place in places}
        for cell, by_cause in made.queries[0].missed.items()
    }
    assert told == {
        DENSE: {"crowded": "copies", "hidden": "unread", "low": "below", "lost": "absent", "gone": "absent"},
        SPARSE: {"found": "below", **dict.fromkeys(("crowded", "hidden", "low", "gone"), "absent")},
        # The dense list has "low" and "crowded" too, below its first ten; the fused one has neither.
        FUSED: {"lost": "fusion", "hidden": "unread", "low": "below", "crowded": "below", "gone": "absent"},
        RERANKED: {"lost": "fusion", "found": "below", **dict.fromkeys(("crowded", "hidden", "low", "gone"), "absent")},
    }
    assert type(made).model_validate_json(made.model_dump_json()) == made


def test_lists_that_are_joined_are_found_among_the_cells_and_a_foreign_name_joins_none():
    assert joined(FUSED, RUNS, {}) == [RUNS[SPARSE].ranks, RUNS[DENSE].ranks]
    assert joined(RERANKED, RUNS, {}) == [RUNS[SPARSE].ranks]
    assert joined(FUSED, {FUSED: RUNS[FUSED]}, {}) == []
    assert all(joined(name, RUNS, {}) == [] for name in (DENSE, SUM, "trec:other", "a"))


def test_a_sum_joins_the_lists_that_it_keeps_and_shows_both_halves_of_each_hit():
    span = Span(0, 9)
    kept = (
        Arms("low", 0.25, 0.5, span),
        Arms("found", None, 0.7, span),
        *(Arms(f"d{n:02}", None, 0.6 - n / 1000, span) for n in range(38)),
        *(Arms(f"e{n:02}", 0.24 - n / 1000, None, span) for n in range(88)),
        Arms("hidden", 0.1, None, span),
    )
    arms = {SUM: {"q1": kept}}
    words, meaning = (arm["q1"] for arm in joined(SUM, {}, arms))
    assert (words["low"], words["hidden"], len(words)) == (0, 89, 90)
    assert (meaning["found"], meaning["low"], len(meaning)) == (0, 39, 40)
    runs = {SUM: run(SUM, *OTHERS[:10], "low", "found", "hidden")}
    qrels = {"q1": dict.fromkeys(WANTED, 3)}
    made = ranked_lists(["q1"], runs, qrels, LABELS, CORPUS, depth=2, relevant_grade=2, arms=arms)
    (query,) = made.queries
    names = [made.documents[pair.document].doc_id for pair in query.documents]
    told = {why: [names[place] for place in places] for why, places in query.missed[SUM].items()}
    assert told == {"fusion": ["found", "low"], "below": ["hidden"], "absent": ["crowded", "gone", "lost"]}
    assert query.halves == {SUM: [[0.25, 0.5], [0.0, 0.7]]}


def test_one_text_is_one_digest_or_one_family_and_nearly_one_length():
    corpus = [
        *(row("a", "f", n_chars=1000), row("b", "f", n_chars=1099), row("c", "f", n_chars=1200)),
        *(row("part", "f", n_chars=5000), row("stranger", n_chars=1000), row("twin", digest="a", n_chars=9)),
        *(row(name, n_chars=1000).model_copy(update={"family": ""}) for name in ("x", "y")),
    ]
    groups = same_texts(corpus)
    assert groups["a"] == groups["b"] == groups["c"] == groups["twin"]
    assert len({groups[name] for name in ("a", "part", "stranger", "x", "y")}) == 5


@given(
    st.permutations(range(40)),
    st.permutations(range(40)),
    st.lists(st.tuples(st.integers(0, 90), st.integers(1, 20)), max_size=4),
)
def test_a_cause_is_given_to_whatever_is_not_among_the_first_ten_and_to_nothing_else(own, arm, marks):
    names = [f"d{number}" for number in range(40)]
    found, joins = (run("a", *(names[place] for place in order[:25])) for order in (own, arm))
    spans = [Span(start, start + length) for start, length in marks]
    for doc_id in names:
        why: Cause | None = cause(
            doc_id,
            "q1",
            found,
            [joins.ranks],
            text_of={name: name for name in names},
            marks=spans,
            unread={"d3": [[0, 99]]},
        )
        ranks = [one.ranks["q1"].get(doc_id, 99) for one in (found, joins)]
        assert (why is None) == (ranks[0] < FIRST)
        if why is not None:
            assert (why == "fusion") == (ranks[1] < FIRST)
            assert why != "absent" or min(ranks) == 99
            assert why != "unread" or doc_id == "d3"


def vectors(*counts):
    n_tokens, n_lost = (np.array(each, np.int64) for each in zip(*counts, strict=True))
    return Vectors(np.zeros((len(counts), 1), np.float32), n_tokens, n_lost)


@pytest.mark.parametrize(
    ("spans", "counts", "expected"),
    [
        ([(0, 100)], [(10, 0)], []),
        ([(0, 100)], [(10, 4)], [[60, 100]]),
        ([(0, 100), (100, 200)], [(10, 5), (10, 5)], [[50, 100], [150, 200]]),
        ([(0, 100), (60, 160)], [(10, 5), (10, 0)], [[50, 60]]),  # the next window reads the rest
        ([(0, 100), (110, 200)], [(10, 10), (10, 0)], [[0, 100]]),
    ],
)
def test_what_an_encoder_read_in_no_chunk_is_unread(spans, counts, expected):
    chunks = [Chunk("d", number, Span(*span), "", 1) for number, span in enumerate(spans)]
    assert unread_spans(chunks, vectors(*counts)) == ({"d": expected} if expected else {})


def test_a_context_is_read_before_the_text():
    (chunk,) = [Chunk("d", 0, Span(0, 90), "t" * 9, 1)]
    assert unread_spans([chunk], vectors((10, 5))) == {"d": [[40, 90]]}
