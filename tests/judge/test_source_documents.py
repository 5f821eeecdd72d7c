"""Source documents that the judge missed, by the list that ranks them higher."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from runner.eval_set.shapes.queries import QueryRow
from runner.judge.agreement.source_documents import source_documents
from tests.support.graded_sets import run_of

LISTS = st.lists(st.sampled_from("abcd"), unique=True)
ROWS = st.lists(
    st.tuples(
        LISTS, LISTS, st.sampled_from(["", *"abcd"]), st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3))
    ),
    min_size=1,
    max_size=6,
)


def queries_of(sources):
    return [
        QueryRow(id=f"q{place}", text="words", kind="topic", origin="person", source_document=source)
        for place, source in enumerate(sources)
    ]


@given(ROWS)
def test_each_judged_source_document_counts_for_the_list_that_ranks_it_higher(rows):
    own, other, sources, grades = zip(*rows, strict=True)
    queries = queries_of(sources)
    ids = [query.id for query in queries]
    runs = run_of(dict(zip(ids, own, strict=True)), "cell"), run_of(dict(zip(ids, other, strict=True)), "base")
    expected = Counter()
    for cell, baseline, source, judged in rows:
        places = [found.index(source) if source in found else 9 for found in (cell, baseline)]
        if source in judged and places[0] != places[1]:
            side = "cell" if places[0] < places[1] else "baseline"
            expected[f"{side}_judged"] += 1
            expected[f"{side}_missed"] += judged[source] < 2
    found = source_documents(queries, *runs, dict(zip(ids, grades, strict=True)), 2)
    if not expected:
        assert found is None
    else:
        assert found.cell == "cell"
        assert {name: getattr(found, name) for name in found.model_dump() if name != "cell"} == {
            f"{side}_{what}": expected[f"{side}_{what}"]
            for side in ("cell", "baseline")
            for what in ("judged", "missed")
        }
