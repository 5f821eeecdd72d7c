"""What a clearly better engine returns: by its definition, and so that no document is lost or falls behind."""

from hypothesis import given
from hypothesis import strategies as st

from runner.gate.better import moved_up

RANKINGS = st.lists(st.integers(0, 40), unique=True, max_size=12)


def by_definition(ranking, relevant, below):
    """Seat every relevant document at its half, one by one down the ranking, then everybody else in order."""
    seats = [None] * (len(ranking) + len(relevant) + below)
    wanted = [(place, d) for place, d in enumerate(ranking, 1) if d in relevant]
    wanted += [(below, d) for d in relevant if d not in ranking]
    for rank, document in wanted:
        first = -(-rank // 2) - 1
        seats[next(seat for seat in range(first, len(seats)) if seats[seat] is None)] = document
    for document in ranking:
        if document not in relevant:
            seats[seats.index(None)] = document
    return [document for document in seats if document is not None]


@given(RANKINGS, RANKINGS, st.integers(13, 16))
def test_relevant_documents_stand_halfway_up(ranking, relevant, below):
    assert moved_up(ranking, relevant, below) == by_definition(ranking, relevant, below)


@given(RANKINGS, st.sets(st.integers(0, 40)))
def test_no_document_is_lost_and_no_relevant_one_falls(ranking, relevant):
    own = [document for document in ranking if document in relevant]
    moved = moved_up(ranking, own, 99)
    assert sorted(moved) == sorted(ranking)
    assert [document for document in moved if document in relevant] == own
    assert all(moved.index(document) <= ranking.index(document) for document in own)
    assert [d for d in moved if d not in relevant] == [d for d in ranking if d not in relevant]
