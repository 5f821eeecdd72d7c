import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.queries.wording import MOST, DistinctiveWords, SampleWords, longest_run, overlap, reading, stems, words
from tests.support.query_fixtures import document

TEXT = st.text(min_size=1, max_size=200).filter(lambda text: text.strip())


def test_stems_leave_out_small_words_and_inflection():
    assert stems("Which ferries did the offices dredge?") == stems("the ferry office is dredging")
    assert stems("who is to be, and what if?") == frozenset()
    assert stems("") == frozenset()


@given(TEXT, TEXT)
def test_overlap_is_a_share(query, text):
    found = overlap(stems(query), stems(text))
    assert found is None if not stems(query) else 0 <= found <= 1


@given(TEXT, st.data())
def test_a_query_made_of_the_document_s_words_overlaps_wholly(text, data):
    held = sorted(set(words(text)))
    if held:
        chosen = data.draw(st.lists(st.sampled_from(held), min_size=1))
        assert overlap(stems(" ".join(chosen)), stems(text)) in (1, None)


def test_overlap_counts_each_content_word_once():
    assert overlap(stems("harbor harbor ferry volcano lava"), stems("ferries of the harbor")) == 0.5
    assert overlap(stems("volcano"), stems("ferry")) == 0.0


def sample(n=20):
    common = "The agency shall make grants to each county under this section."
    return [document(f"D{n}", f"{common} Word{n}x is rare here.", f"Bill {n}") for n in range(n)]


def test_distinctive_words_are_the_rare_ones_of_title_names_numbers_and_text():
    odd = document(
        "odd",
        "The agency shall make grants to each county. Wenceslas rides a velocipede, and the velocipede costs 7,450.",
        "Velocipede Loans Act of 1893",
    )
    found = SampleWords([*sample(), odd]).distinctive(odd)
    assert found.title == ("velocipede", "1893", "act", "loans")
    assert found.names == ("wenceslas",)
    assert set(found.numbers) == {"7", "450"}
    assert set(found.others) == {"costs", "rides"}
    assert found.used_in("Who lends for velocipedes to counties, and what did one cost?") == ["velocipedes", "cost"]


@pytest.mark.parametrize(
    ("forbidden", "used"),
    [
        ("Ukraine", "ukrainian"),
        ("Canada", "canadians"),
        ("Mexican", "mexico"),
        ("Israel", "israeli"),
        ("farm", "farms"),
    ],
)
def test_a_word_derived_from_a_distinctive_one_counts_as_it(forbidden, used):
    assert DistinctiveWords(others=(forbidden.lower(),)).used_in(f"help for {used}") == [used]


@pytest.mark.parametrize(
    ("forbidden", "other"),
    [
        ("secret", "secretary"),
        ("interior", "interest"),
        ("12345", "123456"),
        ("state", "station"),
        ("person", "personnel"),
    ],
)
def test_words_that_only_begin_alike_are_others(forbidden, other):
    assert DistinctiveWords(others=(forbidden,)).used_in(other) == []


def test_there_are_never_more_distinctive_words_than_leave_room_to_write():
    one = document(text=" ".join(f"W{n} {n} w{n}" for n in range(500)), title=" ".join(f"t{n}" for n in range(99)))
    found = SampleWords([one]).distinctive(one)
    assert all(len(getattr(found, sort)) <= most for sort, most in MOST.items())
    assert len(set(found.all)) == len(found.all)


def test_order_of_documents_does_not_matter_and_no_documents_do_no_harm():
    documents = sample()
    forward, backward = SampleWords(documents), SampleWords(documents[::-1])
    assert [forward.distinctive(one) for one in documents] == [backward.distinctive(one) for one in documents]
    assert SampleWords([]).n_documents == 0


@given(TEXT, TEXT)
def test_the_longest_run_is_one_of_the_query_and_stands_in_the_text(query, text):
    run = longest_run(query, text)
    assert 0 <= run <= len(words(query))
    if run:
        held = f" {' '.join(words(text))} "
        asked = words(query)
        assert any(f" {' '.join(asked[n : n + run])} " in held for n in range(len(asked) - run + 1))


def test_a_run_ends_with_a_word_and_not_within_one():
    assert longest_run("the harbor office", "the harbor officer") == 2
    assert longest_run("dredge, the HARBOR now", "They dredge the harbor.") == 3
    assert longest_run("", "anything") == 0


def test_what_a_document_says_begins_with_its_title():
    assert re.match(r"Harbor Act\nThe ferry", reading(document()))
