import re

from hypothesis import given
from hypothesis import strategies as st

from runner.queries.wording import longest_run, overlap, reading, stems, words
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
