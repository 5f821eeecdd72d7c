from hypothesis import given
from hypothesis import strategies as st

from runner.queries.wording import content_words, longest_run, stems, words

TEXT = st.text(min_size=1, max_size=200).filter(lambda text: text.strip())


def test_stems_leave_out_small_words_and_inflection():
    assert stems("Which ferries did the offices dredge?") == stems("the ferry office is dredging")
    assert stems("who is to be, and what if?") == frozenset()
    assert stems("") == frozenset()


@given(TEXT)
def test_content_words_are_words_of_the_text_in_its_order_one_a_stem(text):
    found, held = content_words(text), words(text)
    places = [held.index(word) for word in found.values()]
    assert places == sorted(places)
    assert found.keys() == stems(text)
    assert content_words("Ferries and the ferry's harbors") == {"ferri": "ferries", "harbor": "harbors"}


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
