from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import READ_TOKENS, ChunkHit, Span, merged, n_characters, n_shared
from runner.score.span_scores import BUDGETS, characters_read, gold_spans, span_recall, span_scores
from tests.support.example_results import BASELINE, SPARSE
from tests.support.judge_cases import comparison_of
from tests.support.labels import label

ENDS = st.tuples(st.integers(0, 60), st.integers(1, 20))
SPANS = st.lists(ENDS.map(lambda ends: Span(ends[0], ends[0] + ends[1])), max_size=6)
CHUNKS = st.lists(
    st.builds(
        lambda doc, ends, tokens: ChunkHit(doc, Span(ends[0], ends[0] + ends[1]), tokens),
        st.sampled_from("abc"),
        ENDS,
        st.integers(0, 15),
    ),
    max_size=8,
)
GOLD = st.dictionaries(st.sampled_from("abc"), SPANS.map(merged))


def characters(spans):
    return {place for span in spans for place in range(span.start, span.end)}


def judgment(doc_id, grade, *spans, judge="first", reading=1, query_id="q"):
    given = label(query_id, doc_id, grade, judge, round=reading)
    return given.model_copy(update={"spans": [list(ends) for ends in spans]})


def chunk(doc_id, start, end, n_tokens):
    return ChunkHit(doc_id, Span(start, end), n_tokens)


@given(SPANS, SPANS)
def test_arithmetic_of_spans_is_that_of_their_sets_of_characters(left, right):
    one, other = merged(left), merged(right)
    assert characters(one) == characters(left)
    assert all(before.end < after.start for before, after in pairwise(one))
    assert n_characters(one) == len(characters(left))
    assert n_shared(one, other) == n_shared(other, one) == len(characters(left) & characters(right))


@given(CHUNKS, st.integers(1, 60))
def test_reading_is_chunk_by_chunk_until_the_budget_is_spent(chunks, budget):
    read, left = {}, budget
    for one in chunks:
        length = one.span.end - one.span.start
        kept = length if one.n_tokens <= left else length * left // one.n_tokens
        read.setdefault(one.doc_id, set()).update(range(one.span.start, one.span.start + kept))
        left -= one.n_tokens
        if left <= 0:
            break
    found = {doc_id: characters(spans) for doc_id, spans in characters_read(chunks, budget).items()}
    assert found == {doc_id: places for doc_id, places in read.items() if places}


@given(CHUNKS, st.data(), st.integers(1, 60), GOLD)
def test_cutting_the_same_reading_into_other_chunks_changes_nothing(chunks, data, budget, gold):
    """Tokens as evenly over the pieces as over the whole: what is read is the same up to any budget."""
    scaled = [ChunkHit(one.doc_id, one.span, one.n_tokens * (one.span.end - one.span.start)) for one in chunks]
    pieces = []
    for one in scaled:
        inner = st.integers(one.span.start + 1, max(one.span.start + 1, one.span.end - 1))
        cuts = {cut for cut in data.draw(st.sets(inner, max_size=3)) if cut < one.span.end}
        per_character = one.n_tokens // (one.span.end - one.span.start)
        for start, end in pairwise(sorted({one.span.start, one.span.end, *cuts})):
            pieces.append(chunk(one.doc_id, start, end, per_character * (end - start)))
    assert characters_read(pieces, 10 * budget) == characters_read(scaled, 10 * budget)
    if any(gold.values()):
        assert span_recall(pieces, 10 * budget, gold) == span_recall(scaled, 10 * budget, gold)


@given(CHUNKS, GOLD.filter(lambda gold: any(gold.values())))
def test_more_budget_never_finds_less_and_enough_of_it_finds_what_the_list_holds(chunks, gold):
    found = [span_recall(chunks, budget, gold) for budget in (1, 5, 20, 1000)]
    assert all(0 <= less <= more <= 1 for less, more in pairwise(found))
    whole = {doc_id: characters(one.span for one in chunks if one.doc_id == doc_id) for doc_id in "abc"}
    marked = {doc_id: characters(spans) for doc_id, spans in gold.items()}
    shared = sum(len(whole[doc_id] & places) for doc_id, places in marked.items())
    assert found[-1] == shared / sum(map(len, marked.values()))


def test_the_marks_are_those_of_the_scored_judgments_that_say_relevant():
    found = gold_spans(
        [
            judgment("a", 3, (5, 9), (0, 6)),
            judgment("a", 3, (50, 60), judge="second"),
            judgment("a", 3, (70, 80), reading=2),
            judgment("b", 1, (0, 5)),
            judgment("c", 2),
            judgment("c", 2, (0, 5), judge="second"),
            judgment("d", 0),
            judgment("d", 3, (0, 5), judge="second"),
            judgment("e", 3, (0, 5), reading=2),
        ],
        2,
    )
    assert found == {"q": {"a": (Span(0, 9),), "c": ()}}


def scored(readings, judgments, queries=("p", "q"), cells=(BASELINE, SPARSE)):
    qrels = {}
    for one in judgments:
        qrels.setdefault(one.query_id, {})[one.doc_id] = one.grade
    whole = comparison_of({cell: {q: [] for q in queries} for cell in cells}, qrels)
    return span_scores(whole, judgments, readings)


def test_a_chunker_that_cuts_tighter_finds_as_much_with_less():
    whole, tight = (chunk("a", 0, 4000, 1000),), (chunk("a", 2000, 2400, 100), chunk("a", 0, 2000, 500))
    found = scored({BASELINE: {"q": whole}, SPARSE: {"q": tight}}, [judgment("a", 3, (2100, 2300))], queries=["q"])
    assert (found.queries, found.documents, found.unmarked) == (1, 1, 0)
    assert [one.tokens for one in found.cells[SPARSE]] == [512, 2048, READ_TOKENS] == list(BUDGETS)
    baseline, sparse = ([one.mean for one in found.cells[cell]] for cell in (BASELINE, SPARSE))
    assert baseline == [0, 1, 1]  # 512 of 1,000 tokens end at character 2,048
    assert sparse == [1, 1, 1]
    first = found.cells[SPARSE][0]
    assert (first.difference.mean, first.difference.wins) == (1, 1)
    assert found.cells[BASELINE][0].difference.mean == 0


def test_without_marks_nothing_is_defined_and_no_cell_is_listed():
    found = scored({BASELINE: {"p": (), "q": ()}}, [judgment("a", 3), judgment("b", 0, (0, 4))])
    assert (found.queries, found.documents, found.unmarked, found.cells) == (0, 0, 1, {})


def test_queries_without_marks_are_in_no_mean():
    readings = {
        BASELINE: {"p": (chunk("a", 0, 50, 10),), "q": (chunk("a", 0, 50, 10),)},
        SPARSE: {"p": (chunk("a", 0, 50, 10),), "q": ()},
    }
    found = scored(readings, [judgment("a", 3, (0, 50)), judgment("a", 3, query_id="p")])
    recall, other = (found.cells[cell][0] for cell in (BASELINE, SPARSE))
    assert (found.queries, recall.mean, recall.low, recall.high) == (1, 1, 1, 1)
    assert (other.mean, other.difference.mean, other.difference.losses) == (0, -1, 1)


def test_a_cell_without_a_reading_list_is_not_listed_and_without_the_baselines_nothing_is_compared():
    found = scored({SPARSE: {"q": (chunk("a", 0, 50, 10),)}}, [judgment("a", 3, (0, 50))], queries=["q"])
    assert list(found.cells) == [SPARSE]
    assert found.cells[SPARSE][0].mean == 1
    assert found.cells[SPARSE][0].difference is None
