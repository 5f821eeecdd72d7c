"""What `bm25` looks for: citations however they are printed, and nothing of what an apostrophe leaves behind."""

import pytest
from bm25s.stopwords import STOPWORDS_EN
from hypothesis import given
from hypothesis import strategies as st

from runner.base.records import Chunk, Span
from runner.retrieve.bm25 import bm25_run
from runner.retrieve.words import STOP_WORDS, stemmed, stemmed_terms, unspaced, words

TEXTS = st.text(alphabet="aAhHrRsSu.c'\u2019tn §(5)1,0-\u2013\u00ad\nİß_", max_size=40)


def best(query: str, *texts: str) -> str:
    chunks = [Chunk(f"d{number}", 0, Span(0, 3), "", 1) for number in range(len(texts))]
    hits = bm25_run("cell", "bm25", {"q": query}, chunks, texts).run.hits["q"]
    assert len(hits) == 1 or hits[0].score > hits[1].score
    return texts[int(hits[0].doc_id[1:])]


def test_stop_words_are_those_of_bm25s():
    assert frozenset(STOPWORDS_EN) == STOP_WORDS


@given(TEXTS)
def test_words_stand_in_order_where_they_are_printed_and_are_all_that_is_indexed(text):
    found = list(words(text))
    places = [place for word in found for place in (word.start, word.end)]
    assert places == sorted(places)
    assert all(0 <= word.start < word.end <= len(text) and word.terms for word in found)
    assert stemmed(term for word in found for term in word.terms) == stemmed_terms(text)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("I don't, it’s Act's; we'll see, can't, won't, O'Brien's states'", ["act", "we", "see", "brien", "state"]),
        ("e.g. apples, i.e., p.m. Vitamin C. A study. E. coli", ["appl", "pm", "vitamin", "studi", "coli"]),
        ("U.S.-China anti-U.S. U. S. Ph.D.", ["us", "china", "anti", "us", "us", "ph"]),
        ("long-term care.—In general, co\u00adoperate", ["long", "term", "care", "general", "cooper"]),
        (
            "x-ray T-cell covid-19 5-year",
            ["ray", "x-ray", "cell", "t-cell", "covid", "19", "covid-19", "5", "year", "5-year"],
        ),
        ("1,000 of 5,000,000 and 0.05", ["1000", "5000000", "0", "05", "0.05"]),
        ("h1n1 S12 HR1234 s100a8 12 h", ["h1n1", "s12", "hr1234", "s100a8", "12"]),
        ("Pub. L. 111\u20135", ["pub", "111", "5", "111-5"]),
    ],
)
def test_words_and_numbers(text, terms):
    assert stemmed_terms(text) == terms


@pytest.mark.parametrize(
    ("forms", "terms"),
    [
        (["42 U.S.C. 1983", "42 U. S. C. 1983", "42 USC 1983", "42 u.s.c.\n1983"], {"42", "usc", "1983", "usc1983"}),
        (["42 U.S.C. § 1983", "42 USC §1983", "42 U.S.C. Sec. 1983"], {"42", "usc", "section", "1983", "usc1983"}),
        (["§ 1983", "§§ 1983", "section 1983", "SEC. 1983."], {"section", "1983", "§1983"}),
        (["section 5(a)(1)(B)", "§ 5(a)(1)(B)"], {"section", "5", "§5", "5a", "5a1", "5a1b"}),
        (["1396a(a)(10)"], {"1396a", "1396a(a)", "1396a(a)(10)"}),
        (["1(1)"], {"1", "1(1)"}),
        (["78dd-1", "78dd–1", "78dd\u20111", "78dd−1"], {"78dd", "1", "78dd-1"}),
        (["240.10b-5(b)", "240.10b–5(b)"], {"240", "10b", "5", "10b-5", "240.10b-5", "240.10b-5(b)"}),
        (["40 CFR 52.21", "40 C.F.R. 52.21"], {"40", "cfr", "52", "21", "52.21", "cfr52.21"}),
        (["H.R. 1234", "H. R. 1234", "HR 1234", "h.r.1234"], {"1234", "hr1234"}),
        (["S. 12", "S 12", "S.12"], {"12", "s12"}),
        (["H. J. Res. 5", "H.J.Res. 5", "HJ Res 5", "hjres 5"], {"5", "hjres5"}),
        (["S. Con. Res. 4", "S.Con.Res. 4", "SConRes 4"], {"4", "sconres4"}),
    ],
)
def test_every_form_of_a_citation_is_the_same_terms(forms, terms):
    assert {form: set(stemmed_terms(form)) for form in forms} == dict.fromkeys(forms, terms)


@pytest.mark.parametrize(
    ("query", "wanted", "others"),
    [
        ("42 USC 1983", "42 U.S.C. 1983 (deprivation of rights)", ["the year 1983, in 42 States", "42 U.S.C. 1981 of"]),
        ("§ 1983", "an action under section 1983 of it", ["in the year 1983 an action", "section 1981 of it here"]),
        ("section 5(a)(1)(B)", "under section 5(a)(1)(B) of the Act", ["5(a)(1)(A) of section 1 B", "section 5(b)(1)"]),
        ("15 USC 78dd-2", "section 78dd–2 of title 15", ["section 78dd–1 of title 15", "title 15 and 2 and 78ff"]),
        ("HR 1234", "relating to H. R. 1234, a bill", ["relating to S. 1234, a bill", "room 1234 of a bill"]),
        ("S 12", "the bill S. 12 was read", ["the 12 bills were read", "the bill H.R. 12 was read"]),
        ("501c3 groups", "groups under section 501(c)(3)", ["groups under section 501(c)(4)", "groups of 501 or 3"]),
        ("1000 growers", "for 1,000 growers", ["for 1 of 10 growers", "for 100 growers"]),
        ("why don't levees fail", "levees that fail", ["we don't and they don't, won't, can't", "a, b, c, t"]),
        (
            "the Warden's ledger",
            "Each warden keeps a ledger.",
            ["It’s the clerk’s list, the mayor’s list."],
        ),
        (
            "crops, e.g. vetch",
            "Vetch and other crops.",
            ["Plan E, plan G, plan I: e.g. a plan", "E. G. Ives of E."],
        ),
        ("need I form Q to moor", "A houseboat may moor without a form.", ["I, Q, I, Q and I.", "Q is for quay."]),
        ("rule 7 of beekeeping", "Rule 7 says how beekeeping is done.", ["Rule 8 on beekeeping.", "7 bees."]),
        (
            "17 CFR 240.10b-5",
            "Under 17 C.F.R. 240.10b–5 that is",
            ["17 CFR 240.10a-1 and 5", "240 of 17 in 10b and 5: CFR"],
        ),
    ],
)
def test_a_query_finds_the_text_that_answers_it_first(query, wanted, others):
    assert best(query, *others, wanted) == wanted


@pytest.mark.parametrize("unit", ["§", "(a)", "1,234", "s. ", "u.", "1.", "1-", "x'", "sec", "h 1", "§ 5(a)", "\u00ad"])
def test_a_hostile_text_takes_time_and_terms_in_proportion_to_its_length(unit):
    assert sum(map(len, stemmed_terms("5" + unit * 30_000))) < 30_000 * (8 * len(unit) + 40)


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        *((["図書館は何時に開きますか"], True), (["图书馆"], True), (["ห้องสมุดเปิดวันอาทิตย์"], True), (["សួស្តី"], True)),
        *((["מתי הספרייה פתוחה"], False), (["도서관 시간"], False), (["مياه الشرب"], False), ([], False)),
        (["the character 水 in a sentence"], False),
        *((["図書館", "自転車", "ferry"], True), (["図書館", "ferry"], False)),
    ],
)
def test_scripts_without_spaces_are_told_from_those_with(texts, found):
    assert unspaced(texts) is found
