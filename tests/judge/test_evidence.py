"""What a judge is shown of a document: by words and by meaning, from the whole of it, whatever found it."""

import time
from inspect import signature
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.base.records import Document, Section, Span, n_characters
from runner.base.store import Store
from runner.embed.local_encoder import encoder_for
from runner.eval_set.batches import FULLER, WHOLE_TEXT, make_row
from runner.eval_set.shapes.plan import Evidence
from runner.judge.evidence import (
    HEADINGS_SHARE,
    OPENING,
    TABLE,
    WINDOW,
    Passages,
    expected_chars,
    frame,
    in_turn,
    windows,
)
from tests.support.fake_encoder import direction
from tests.support.small_set import SmallEncoder

SETTINGS = Evidence()
BY_WORDS = "The zymurgist of Quern shall file form 88-Q before the ides of March."
BY_MEANING = "Old soldiers who lost a limb in combat receive a monthly payment for life from the treasury."


def filled(size, *planted, cycle=10**6):
    """A text of so many characters about ledgers, of so many different clauses, with each sentence at its place."""
    numbers = (n % cycle for n in range(size // 55 + 1))
    text = "".join(f"Clause {n:03} orders that ledger {n:03} of the county be bound.\n" for n in numbers)[:size]
    for place, sentence in planted:
        text = f"{text[:place]}\n{sentence}\n{text[place:]}"
    return text


def finding(folder, make=SmallEncoder):
    """Passages by two encoders that are made of their names."""
    return Passages(SETTINGS, make("minilm-l6-v2"), make(TABLE), Store(folder))


class Blind(SmallEncoder):
    """For it words of the document mean nothing: every text has a direction of its own."""

    def _row(self, text):
        return direction(text, 48) if "ledger" in text or "zymurgist" in text else super()._row(text)


def document(text, *sections):
    return Document("d1", text, "An Act", "", "", "", sections)


@pytest.fixture(name="passages")
def _passages(tmp_path):
    return finding(tmp_path)


def shown_text(passages, long, *wordings, times=1):
    (shown,) = passages.shown(long, [wordings], times)
    return "".join(long.text[span.start : span.end] for span in shown.spans)


def test_the_deciding_passage_deep_in_a_long_document_is_shown_by_words_alone(tmp_path):
    long = document(filled(500_000, (371_000, BY_WORDS)))
    (shown,) = finding(tmp_path, Blind).shown(long, [["what must a zymurgist file"]])
    assert any(BY_WORDS in long.text[span.start : span.end] for span in shown.spans)
    assert n_characters(shown.spans) <= SETTINGS.chars


@pytest.mark.model
def test_the_deciding_passage_deep_in_a_long_document_is_shown_by_meaning_alone(tmp_path):
    # Of few clauses, so that few windows differ and have to be embedded.
    long = document(filled(500_000, (371_000, BY_MEANING), cycle=20))
    assert BY_MEANING in shown_text(finding(tmp_path, encoder_for), long, "disability pension of war veterans")


def test_a_text_that_fits_is_shown_whole_and_one_character_more_is_not(passages):
    for size, is_whole in ((SETTINGS.chars, True), (SETTINGS.chars + 1, False)):
        long = document(filled(size))
        row = make_row("v", "0" * 64, ("q", "x"), long, *passages.shown(long, [["ledger 7"]]))
        assert (row.n_chars, row.left_out == 0, row.shown_by == WHOLE_TEXT) == (size, is_whole, is_whole)
        gaps = sum(passage.left_out for passage in row.evidence) + size - row.evidence[-1].end
        assert row.left_out == gaps == size - sum(len(passage.text) for passage in row.evidence)


def test_what_is_shown_is_a_function_of_wordings_document_and_settings_alone(passages, tmp_path):
    assert list(signature(passages.shown).parameters) == ["document", "topics", "times"]
    long = document(filled(60_000, (41_000, BY_WORDS)))
    topics = [["ledger 700"], ["zymurgist", "who files form 88-Q"], ["bound"]]
    alone = [finding(tmp_path / "b").shown(long, [one])[0] for one in topics]
    assert passages.shown(long, topics) == alone


@pytest.mark.parametrize("seeing", ["minilm-l6-v2", TABLE])
def test_what_one_of_the_two_encoders_alone_likes_is_shown(tmp_path, seeing):
    """The two like other passages, and cells of either kind are served."""

    class Likes(Blind):
        def _row(self, text):
            liked = "lamplighter" in text or text.startswith("who lights")
            return direction("lamps", 48) if liked and self.spec.name == seeing else super()._row(text)

    long = document(filled(60_000, (41_000, "A lamplighter is paid monthly.")))
    assert "lamplighter" in shown_text(finding(tmp_path, Likes), long, "who lights streets")
    assert "lamplighter" not in shown_text(finding(tmp_path, Blind), long, "who lights streets")


@pytest.mark.parametrize("about", ["Pensions of lighthouse keepers", "Fees of harbour pilots", "Oaths of bee wardens"])
def test_a_passage_under_a_heading_that_answers_is_shown_though_it_says_nothing_of_it(passages, about):
    # Six hundred characters and more after its heading, so that no window has both.
    clause = "It is nine."
    parts = [filled(30_000), f"Sec. 2. {about}\n{'- ' * 350}{clause}{' -' * 350}\n", filled(30_000)]
    section = Section(Span(len(parts[0]), len(parts[0]) + len(parts[1])), 1, "section", f"Sec. 2. {about}")
    assert clause in shown_text(passages, document("".join(parts), section), about.lower())
    assert clause not in shown_text(passages, document("".join(parts)), about.lower())


class Shaky(SmallEncoder):
    """The same model on a machine that rounds otherwise."""

    def encode(self, texts, side):
        rows = super().encode(texts, side)
        return rows + np.float32(1e-7) * direction(f"{len(texts)}", 48).astype(np.float32)


def test_rounding_of_another_machine_moves_nothing_that_is_shown(passages, tmp_path):
    long = document(filled(60_000, (41_000, BY_WORDS)))
    topics = [[f"ledger {n} of the county"] for n in range(40)]
    assert finding(tmp_path / "other", Shaky).shown(long, topics) == passages.shown(long, topics)


def test_both_wordings_of_a_topic_are_served_alike(passages):
    long = document(filled(200_000, (90_000, "The heron nests in reeds."), (150_000, "The otter sleeps in mud.")))
    both = shown_text(passages, long, "heron nests reeds", "otter sleeps mud")
    assert "heron nests" in both
    assert "otter sleeps" in both
    assert in_turn([[1, 2, 3], [4, 1], [5, 6, 7, 8]]) == [1, 4, 5, 2, 6, 3, 7, 8]


def test_a_fuller_reading_shows_what_the_first_did_and_up_to_three_times_as_much(passages):
    long = document(filled(200_000, (90_000, BY_WORDS)))
    first, fuller = (passages.shown(long, [["zymurgist"]], times)[0].spans for times in (1, FULLER))
    assert all(any(more.start <= span.start and span.end <= more.end for more in fuller) for span in first)
    assert 2 * SETTINGS.chars < n_characters(fuller) <= FULLER * SETTINGS.chars


def test_a_fuller_reading_goes_on_where_the_best_passages_break_off(passages):
    long = document(filled(90_000, (60_000, BY_WORDS)))
    asked = "what must a zymurgist file"
    after = long.text.index(BY_WORDS) + WINDOW
    first, fuller = (shown_text(passages, long, asked, times=times) for times in (1, FULLER))
    assert long.text[after : after + 100] in fuller
    assert long.text[after : after + 100] not in first


def test_vectors_of_a_document_are_kept_for_the_next_export(passages):
    long = document(filled(40_000))
    first = passages.shown(long, [["ledger 3"]])
    again = finding(passages.store.root, Counting)
    assert again.shown(long, [["ledger 3"]]) == first
    assert {again.reader.n_texts, again.table.n_texts} <= {0, 1}, "the query alone"


class Counting(SmallEncoder):
    n_texts = 0

    def encode(self, texts, side):
        self.n_texts += len(texts)
        return super().encode(texts, side)


def test_the_frame_is_the_opening_and_outer_headings_within_their_share():
    lines = [f"Sec. {n}. Of ledgers\n{'x' * 300}\n" for n in range(200)]
    text, places = "".join(lines), np.cumsum([0, *map(len, lines)]).tolist()
    sections = [Section(Span(a, b), 2, "section", "Sec.") for a, b in pairwise(places)]
    sections.insert(100, Section(Span(places[100], places[120]), 1, "title", "Title"))
    spans = frame(document(text, *sections), SETTINGS.chars)
    headings = sum(span.end - span.start for span in spans if span.start >= OPENING)
    assert 0 < headings <= SETTINGS.chars // HEADINGS_SHARE
    assert text[spans[0].start : spans[0].end] == text[: spans[0].end]
    assert any(span.start == places[100] for span in spans), "the outer one, though deep in the text"
    assert "".join(text[span.start : span.end] for span in spans).count("Sec.") > 10


HOSTILE = {
    "no spaces": "x" * 200_000,
    "one line": "grain " * 333_333,
    "blank lines": f"a{chr(10) * 200_000}b",
    "blanks": f"a{' ' * 200_000}b",
    "digits": "7 " * 40_000,
    "other script": "法律第五条" * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_cut_in_bounded_time(passages, name):
    started = time.process_time()
    long = document(HOSTILE[name])
    for query in ("grain of the law", "第五条", "7", "?!"):
        (shown,) = passages.shown(long, [[query]])
        assert shown.spans[0].start == 0
        assert 0 < n_characters(shown.spans) <= SETTINGS.chars
    assert time.process_time() - started < 60


def test_a_document_of_headings_alone_is_shown_within_the_budget(passages):
    lines = [f"Sec. {n}.\n" for n in range(20_000)]
    places = np.cumsum([0, *map(len, lines)]).tolist()
    sections = [Section(Span(a, b), 1, "section", "Sec.") for a, b in pairwise(places)]
    (shown,) = passages.shown(document("".join(lines), *sections), [["sec 19999"]])
    assert n_characters(shown.spans) <= SETTINGS.chars


@settings(max_examples=50)
@given(st.text(st.sampled_from("ab. \n"), min_size=1, max_size=5_000))
def test_windows_are_all_of_a_text_but_blanks_in_order_and_none_is_long(text):
    spans = windows(text)
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert "".join(text[span.start : span.end] for span in spans).replace(" ", "").replace("\n", "") == text.replace(
        " ", ""
    ).replace("\n", "")
    assert all(span.end - span.start <= WINDOW for span in spans)


def test_the_price_is_of_what_may_be_shown():
    assert expected_chars([], SETTINGS) == SETTINGS.chars
    assert expected_chars([2_000, 100_000], SETTINGS) == (2_000 + SETTINGS.chars) / 2
    assert expected_chars([2_000, 100_000], SETTINGS, FULLER) == (2_000 + 3 * SETTINGS.chars) / 2
