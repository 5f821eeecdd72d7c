import json
import random
import tracemalloc
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chunkers import outline, splitting, tokens
from chunkers.contexts import LABEL_TOKENS, PATH_TOKENS, TITLE_TOKENS, label_range, path_context, shortened
from chunkers.contract import chunk_fault
from chunkers.registry import BARE, CHUNKERS, NARROWED, chunker, limit_of, uncut
from chunkers.sections import SectionRules
from chunkers.splitting import split_text
from chunkers.structural import BILLS, CODE, MARKDOWN, REGULATIONS, REPORTS
from chunkers.tokens import count_tokens, tokenize
from runner.base.canonical import sha256
from runner.base.errors import InputError
from runner.base.places import CHECKOUT
from runner.base.records import Chunk, Document, Section, Span
from runner.embed.chunk_corpus import chunks_to_rows
from runner.embed.local_encoder import encoder_for
from runner.eval_set.catalog import SOURCES
from tests.support.written_document import Speech

DATA = Path(__file__).parents[1] / "data" / "chunkers"
GOLDEN: dict[str, str] = json.loads((DATA / "golden.json").read_text(encoding="utf-8"))
OVERLAPS = {"fixed_token_256_25": 25, "fixed_token_512_50": 50, "fixed_token_1024_100": 100}
"""Tokens that each window shares with the one before it, exactly."""

PATHS = {"fixed_path_192_20": 20, "fixed_path_256_25": 25, "fixed_path_512_50": 50}
"""The same of windows under a path, unless fewer fit."""

MAY_OVERLAP = {*OVERLAPS, *PATHS}
"""Chunkers whose chunks may share text; those of every other one may not."""

STRUCTURAL = "section_aware_bills_v1"
BY_SECTION = {
    STRUCTURAL: BILLS,
    "section_aware_fr_v1": REGULATIONS,
    "usc_uslm_section_v1": CODE,
    "by_heading_v1": MARKDOWN,
    "markdown_header_v1": MARKDOWN,
    "section_aware_committee_v1": REPORTS,
}
MINILM = encoder_for("minilm-l6-v2")
ONE_PER_FAMILY = [*{name.partition("_256_")[0]: name for name in NARROWED if "_256_" in name}.values()]
WITH_PATHS = {*BY_SECTION, *PATHS, *(name for name in CHUNKERS if name.startswith("speaker_"))}


def document(text: str, sections: tuple[Section, ...] = (), title: str = "Harbors Act") -> Document:
    return Document("d", text, title, "s", "d", "https://example.org/d", sections)


def fixtures() -> Iterator[Document]:
    for path in sorted(DATA.glob("*.json")):
        if path.name != "golden.json":
            value = json.loads(path.read_text(encoding="utf-8"))
            parts = tuple(
                Section(Span(s["start"], s["end"]), s["level"], s["kind"], s["label"]) for s in value["sections"]
            )
            yield Document(value["doc_id"], value["text"], value["title"], "s", value["doc_id"], "", parts)


class Builder:
    """Text with nested sections, written front to back."""

    def __init__(self) -> None:
        self.text = ""
        self.sections: list[Section] = []

    def write(self, words: str, separator: str) -> None:
        self.text += (separator if self.text else "") + words

    def part(self, tree: tuple, depth: int) -> None:
        kind, label, separator, opening, children, closing = tree
        start, place = len(self.text), len(self.sections)
        self.write(opening, separator)
        for child in children:
            self.part(child, depth + 1)
        self.write(closing, separator)
        if start < len(self.text):
            self.sections.insert(place, Section(Span(start, len(self.text)), depth, kind, label))


KINDS = st.sampled_from(
    [
        *("division", "title", "section", "section", "section", "subsection", "paragraph"),
        *("appropriations-small", "preamble"),
    ]
)
WORDS = st.sampled_from(
    [
        *("The Keeper shall mend it. ", "ropes; ", "café ", "漢字", "퀠", "😀 ", "\n", "\n\n", "x", "<|endoftext|>"),
        *(" ", "Sec. 4 "),
    ]
)
STRETCHES = st.lists(st.tuples(WORDS, st.sampled_from([0, 1, 3, 40, 150, 700])), max_size=3).map(
    lambda runs: unicodedata.normalize("NFC", "".join(word * times for word, times in runs))
)
LABELS = st.sampled_from(["", "Sec. 3. Grants", "(a) In general", "Title IV—" + "Very long heading " * 30, "§ 78dd–1."])
SEPARATORS = st.sampled_from(["\n\n", "\n", " ", ""])
TREES = st.recursive(
    st.tuples(KINDS, LABELS, SEPARATORS, STRETCHES, st.just(()), STRETCHES),
    lambda inner: st.tuples(KINDS, LABELS, SEPARATORS, STRETCHES, st.lists(inner, max_size=4).map(tuple), STRETCHES),
    max_leaves=10,
)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    builder = Builder()
    builder.write(draw(STRETCHES), "")
    for tree in draw(st.lists(TREES, max_size=3)):
        builder.part(tree, 1)
    builder.write(draw(STRETCHES), "\n")
    title = draw(st.sampled_from(["", "Short Act", "An Act to " + "mend and paint the quay " * 20, "漢" * 90]))
    return document(
        builder.text if builder.text.strip() else "x", tuple(builder.sections) if builder.text.strip() else (), title
    )


def check(source: Document, name: str, chunks: list[Chunk]) -> None:
    """What every chunker promises."""
    assert not (fault := chunk_fault(source, chunks, limit_of(name))), f"{name}: {fault}"
    longest = PATH_TOKENS if uncut(name) in WITH_PATHS else TITLE_TOKENS
    assert all(count_tokens(chunk.context) <= longest for chunk in chunks), f"{name}: a context is too long"
    if uncut(name) not in MAY_OVERLAP:
        assert all(a.span.end <= b.span.start for a, b in pairwise(chunks)), (
            f"chunks of {name} share text; see MAY_OVERLAP"
        )
    if uncut(name) in BY_SECTION:
        check_containers(source, chunks, BY_SECTION[uncut(name)])


def check_containers(source: Document, chunks: list[Chunk], rules: SectionRules) -> None:
    """No chunk has text of two divisions, or of two parts of any kind that holds sections."""
    for kind in rules.containers:
        parts = [section.span for section in source.sections if section.kind == kind]
        for chunk in chunks:
            inside = [
                part
                for part in parts
                if source.text[max(part.start, chunk.span.start) : min(part.end, chunk.span.end)].strip()
            ]
            assert all(a.end > b.start for a, b in pairwise(inside)), (kind, chunk)


@pytest.mark.parametrize("name", CHUNKERS)
@given(source=documents())
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_invariants_hold_for_nested_documents(name: str, source: Document) -> None:
    chunks = chunker(name)(source)
    check(source, name, chunks)
    assert chunker(name)(source) == chunks


def check_narrow(source: Document, name: str) -> list[Chunk]:
    """What a chunker that cuts further promises beside: no boundary lost, and no token unread by MiniLM itself."""
    chunks, before = chunker(name)(source), chunker(uncut(name))(source)
    check(source, name, chunks)
    starts, old_starts = ({chunk.span.start for chunk in each} for each in (chunks, before))
    ends, old_ends = (
        {c.span.start + len(source.text[c.span.start : c.span.end].rstrip()) for c in each} for each in (chunks, before)
    )
    assert old_starts <= starts
    assert old_ends <= ends
    read = [chunk.reading(source) for chunk in chunks]
    assert max(MINILM.token_counts(read, "document")) <= limit_of(name)
    kept = {chunk.span: chunk.context for chunk in chunks}
    sizes = MINILM.token_counts([chunk.reading(source) for chunk in before], "document")
    for chunk, n_read in zip(before, sizes.tolist(), strict=True):
        if max(n_read, chunk.n_tokens) <= limit_of(name):  # fits as it is
            assert kept[chunk.span] == chunk.context
    return chunks


@pytest.mark.parametrize("name", ONE_PER_FAMILY)
@given(source=documents())
@settings(max_examples=5, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_chunk_cut_further_keeps_the_boundaries_and_leaves_its_encoder_nothing_unread(
    name: str, source: Document
) -> None:
    check_narrow(source, name)


HOSTILE = "".join(("q" * 900, " ." * 900, "." * 3000, "퀠" * 900, "漢" * 700, "😀" * 300, "⅚ﬃ" * 400, "[SEP]" * 300))
COUNTED_OTHERWISE = document(
    HOSTILE, (Section(Span(0, len(HOSTILE)), 1, "section", "." * 400 + "漢" * 60),), "." * 2000 + " Act " * 60
)


@pytest.mark.parametrize("name", ["recursive_256_v1", "speaker_turn_512_v1", "usc_uslm_section_512_v1"])
def test_words_and_titles_that_an_encoder_counts_quite_otherwise_are_read_whole(name: str) -> None:
    check_narrow(COUNTED_OTHERWISE, name)


def check_path(source: Document, name: str) -> list[Chunk]:
    """What windows under a path promise beside: all read by MiniLM itself, and a third for the path at most."""
    chunks, limit = chunker(name)(source), limit_of(name)
    check(source, name, chunks)
    assert max(MINILM.token_counts([chunk.reading(source) for chunk in chunks], "document")) <= limit
    assert max(MINILM.token_counts([chunk.context for chunk in chunks], "document")) <= limit // 3
    assert max(count_tokens(chunk.context) for chunk in chunks) <= limit // 3
    return chunks


@pytest.mark.parametrize("name", PATHS)
@given(source=documents())
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_a_window_under_a_path_is_read_whole_and_leaves_two_thirds_to_the_text(name: str, source: Document) -> None:
    check_path(source, name)


@pytest.mark.parametrize(("name", "overlap"), PATHS.items())
def test_windows_stand_under_the_headings_that_lead_to_them_or_under_the_title(name: str, overlap: int) -> None:
    speech = Speech()
    for n, heading in enumerate(("Lamps", "Ropes"), start=1):
        words = "The keeper shall mend the quay and paint it. " * 300
        speech.part(11, "section", f"Sec. {n}. {heading}", f"Sec. {n}. {heading}\n{words}".strip())
    source = speech.document("Harbors Act")
    chunks = check_path(source, name)
    first, between, last = "Sec. 1. Lamps", "Sec. 1 – Sec. 2", "Sec. 2. Ropes"
    assert list(dict.fromkeys(chunk.context for chunk in chunks)) == [
        f"Harbors Act > {label}" for label in (first, between, last)
    ]
    shared = [tokenize(source.text).count(b.span.start, a.span.end) for a, b in pairwise(chunks)]
    assert set(shared) == {overlap}
    assert min(chunk.n_tokens for chunk in chunks[:-1]) > limit_of(name) * 0.95
    assert {chunk.context for chunk in check_path(document(source.text), name)} == {"Harbors Act"}


def test_a_path_too_long_for_a_third_keeps_the_title_and_the_innermost_heading() -> None:
    text = "The keeper shall mend the quay and paint it. " * 20
    words = ("Oversight of quays, lamps and ropes ", "Requirements for keepers of harbor lights ", "Annual painting ")
    nested = tuple(
        Section(Span(0, len(text)), n, "part", (label * 7).strip()) for n, label in enumerate(words, start=1)
    )
    for chunk in check_path(document(text, nested), "fixed_path_256_25"):
        assert chunk.context.startswith("Harbors Act > … > ")
        assert chunk.context.endswith(" > " + (words[-1] * 7).strip())


def test_a_chunk_is_cut_at_its_parts_before_its_lines_and_a_part_keeps_its_heading() -> None:
    speech = Speech().part(11, "section", "Sec. 9. Duties", "Sec. 9. Duties")
    for letter in "abc":
        duty = "The keeper shall mend the quay.\n" * 19
        speech.part(12, "subsection", f"({letter}) Duty", f"({letter}) Duty\n{duty}", "\n")
    source = speech.document("Harbors Act")
    starts = [source.text.index(f"({letter})") for letter in "abc"]
    assert len(chunker("section_aware_bills_v1")(source)) == 1
    chunks = check_narrow(source, "section_aware_bills_256_v1")
    assert [chunk.span.start for chunk in chunks] == [0, *starts[1:]]
    assert [chunk.context for chunk in chunks[1:]] == [f"Harbors Act > Sec. 9. Duties > ({x}) Duty" for x in "bc"]


def digest_of(name: str) -> str:
    return sha256(chunks_to_rows([chunk for source in fixtures() for chunk in chunker(name)(source)]))


@pytest.mark.parametrize("name", OVERLAPS)
@pytest.mark.parametrize("title", ["H.R. 1 (117th Congress): To light lamps", "To light lamps.", ""])
def test_a_window_is_read_with_its_title_and_line_break_within_its_size(name: str, title: str) -> None:
    source = Document("a", "lamp oil " * 4_000, title, "", "a", "")
    read = [count_tokens(chunk.reading(source)) for chunk in chunker(name)(source)]
    assert max(read) == limit_of(name)


@pytest.mark.parametrize("name", GOLDEN)
def test_output_by_name_never_changes(name: str) -> None:
    assert digest_of(name) == GOLDEN[name], (
        f"{name} does not chunk as it did. If it was ever released, results under that name are on record: keep it, "
        f"and give the changed chunker a new name (…_v2). A chunker that is still being written takes the new line:\n"
        f"{lines_for([name])}"
    )


def lines_for(names: Iterable[str]) -> str:
    """What golden.json lacks for them, a line each, to paste behind its first brace."""
    return "".join(f'  "{name}": "{digest_of(name)}",\n' for name in names)


def test_every_name_has_a_golden_digest() -> None:
    missing = [name for name in (*CHUNKERS, *NARROWED) if name not in GOLDEN]
    assert missing == [], f"For the top of {DATA / 'golden.json'}:\n{lines_for(missing)}"


@pytest.mark.parametrize(("name", "overlap"), OVERLAPS.items())
@given(words=st.lists(st.sampled_from(["mend ", "the ", "Keeper's ", "123456 ", "\n"]), min_size=1, max_size=30))
def test_windows_overlap_by_exactly_that_many_tokens(name: str, overlap: int, words: list[str]) -> None:
    source = document("Begin " + "".join(words) * 120)
    chunks = chunker(name)(source)
    tokens = tokenize(source.text)
    for before, after in pairwise(chunks):
        assert tokens.count(after.span.start, before.span.end) == overlap
        line_break = count_tokens(f"{before.context}\n") - count_tokens(before.context) if before.context else 0
        assert before.n_tokens + line_break == limit_of(name)
        assert after.span.end > before.span.end


@pytest.mark.parametrize("name", CHUNKERS)
def test_a_line_without_spaces_is_chunked(name: str) -> None:
    source = document("q" * 300_000)
    check(source, name, chunker(name)(source))


def test_small_siblings_are_merged_and_never_across_a_title() -> None:
    speech = Speech()
    sections = {"Title I—Names": {1: "Name", 2: "Lamps"}, "Title II—Gear": {3: "Ropes"}}
    for title, inside in sections.items():
        speech.part(1, "title", title)
        for n, name in inside.items():
            speech.part(11, "section", f"Sec. {n}. {name}", f"Sec. {n}. {name}\nEach quay has one on it.")
    chunks = chunker(STRUCTURAL)(speech.document("Harbors Act"))
    assert [(chunk.span, chunk.context) for chunk in chunks] == [
        (Span(0, 77), "Harbors Act > Title I—Names > Sec. 1 – Sec. 2"),
        (Span(79, 117), "Harbors Act > Title II—Gear > Sec. 3. Ropes"),
    ]


def test_front_matter_joins_the_first_section_and_stays_out_of_a_division() -> None:
    text = "An Act about quays.\n\nDIVISION A\n\nSec. 1. Lamps"
    lamps = Section(Span(33, 46), 11, "section", "Sec. 1. Lamps")
    with_division = document(text, (Section(Span(21, 46), 1, "division", "Division A"), lamps))
    assert [chunk.span for chunk in chunker(STRUCTURAL)(with_division)] == [Span(0, 19), Span(21, 46)]
    assert [chunk.context for chunk in chunker(STRUCTURAL)(with_division)] == [
        "Harbors Act",
        "Harbors Act > Division A > Sec. 1. Lamps",
    ]
    assert [chunk.span for chunk in chunker(STRUCTURAL)(document(text, (lamps,)))] == [Span(0, 46)]


@pytest.mark.parametrize("name", sorted(WITH_PATHS))
def test_a_heading_of_many_words_is_not_encoded_again_for_each_section_in_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    heading, each = "Heading " * 2_000, "A few words. " * 50
    size = len(each) + 1
    text = heading + "\n" + "\n".join([each] * 100)
    starts = range(len(heading) + 1, len(text), size)
    inner = (Section(Span(start, start + size - 1), 2, "section", f"{start}") for start in starts)
    source = document(text, (Section(Span(0, len(text)), 1, "title", heading), *inner))
    encoded: list[int] = []
    encode = tokens._encode
    monkeypatch.setattr(tokens, "_encode", lambda text: encoded.append(len(text)) or encode(text))
    assert len(chunker(name)(source)) >= 34
    assert sum(encoded) < 3 * len(text)


@pytest.mark.parametrize("name", ["markdown_header_v1", "section_aware_fr_v1"])
def test_a_heading_of_a_whole_document_is_read_once_and_not_again_for_each_chunk(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    bare = outline._bare
    monkeypatch.setattr(outline, "_bare", lambda text: read.append(len(text)) or bare(text))
    text = "A harbor master may set a fee for each ship that lies there. " * 4000
    section = Section(Span(0, len(text)), 1, "section", text.strip())
    assert len(chunker(name)(document(text, (section,)))) > 50
    assert sum(read) < 4 * len(text)


def test_a_stretch_of_single_letters_is_cut_in_few_times_its_memory() -> None:
    text = "a " * 150_000
    tokenize("warm")
    tracemalloc.start()
    try:
        pieces = split_text(text, tokenize(text), (0, len(text)), budget=500)
        assert len(pieces) == 300
        assert tracemalloc.get_traced_memory()[1] < 45 * len(text)
    finally:
        tracemalloc.stop()


def test_a_text_is_cut_as_by_the_plain_method() -> None:
    pieces = ["a ", "bcd ", "\n\n", " \n", "Stop. Go ", "x" * 40, "; (b) ", "\t", "日本", "one.\n"]

    def plain(start: int, end: int, level: int) -> list[tuple[int, int]]:
        if tokens_of.count(start, end) <= budget:
            return [(start, end)]
        if level == len(splitting._BREAKS):
            return splitting._windows(tokens_of, (start, end), budget)
        found = [match.span() for match in splitting._BREAKS[level].finditer(text, start, end)]
        ends = zip([start, *(stop for _, stop in found)], [*(begin for begin, _ in found), end], strict=True)
        parts = [part for begin, stop in ends if begin < stop for part in plain(begin, stop, level + 1)]
        joined = parts[:1]
        for part in parts[1:]:
            if tokens_of.count(joined[-1][0], part[1]) <= budget:
                joined[-1] = joined[-1][0], part[1]
            else:
                joined.append(part)
        return joined

    for seed in range(60):
        text = f"A{''.join(random.Random(seed).choices(pieces, k=80))}z"
        tokens_of = tokenize(text)
        for budget in (4, 15, 60):
            assert split_text(text, tokens_of, (0, len(text)), budget) == plain(0, len(text), 0)


def test_a_bare_chunker_keeps_boundaries_and_drops_context() -> None:
    for source in fixtures():
        full, bare = chunker(STRUCTURAL)(source), chunker(STRUCTURAL + BARE)(source)
        assert [chunk.span for chunk in bare] == [chunk.span for chunk in full]
        tokens = tokenize(source.text)
        assert all(chunk.n_tokens == tokens.count(chunk.span.start, chunk.span.end) for chunk in bare)
        assert {chunk.context for chunk in bare} == {""}


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("fixed_token_512", "fixed_token_512_50"),
        ("section_aware_bill_v1-bare", "section_aware_bills_v1-bare"),
        ("by_heading_128_v1-bare", "by_heading_256_v1-bare' or 'by_heading_512_v1-bare"),
        ("fixed_path_128_13", "fixed_path_192_20' or 'fixed_path_256_25' or 'fixed_path_512_50"),
    ],
)
def test_an_unknown_chunker_names_the_nearest(wrong: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"no chunker '{wrong}'; did you mean '{meant}'"):
        chunker(wrong)


@given(st.text(st.sampled_from("ab 漢é,.\n"), max_size=400), st.integers(2, 60))
def test_shortened_text_fits_and_begins_like_the_text(text: str, limit: int) -> None:
    line = " ".join(text.split())
    short = shortened(text, limit)
    assert count_tokens(short) <= limit or short == "…"
    assert line == short or (short.endswith("…") and line.startswith(short[:-1]))


def test_a_long_path_keeps_the_title_and_the_innermost_heading() -> None:
    labels = [f"Title {n}—" + "of many words and further words " * 3 for n in ("I", "II", "III", "IV")]
    path = path_context("The Quay Act", (*labels, "Sec. 3. Grants"))
    assert path.startswith("The Quay Act > … > ")
    assert path.endswith(" > Sec. 3. Grants")
    assert PATH_TOKENS - LABEL_TOKENS < count_tokens(path) <= PATH_TOKENS


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["Sec. 3. Grants", "", "Sec. 5A. Reports"], "Sec. 3 – Sec. 5A"),
        (["§ 78dd–1. Conduct", "§ 78dd–3"], "§ 78dd–1 – § 78dd–3"),
        (["(a) In general", "(c)"], "(a) – (c)"),
        (["Division A—Health", "Findings"], "Division A – Findings"),
        (["", "Findings"], "Findings"),
        (["", ""], ""),
    ],
)
def test_neighbours_are_named_by_the_range_of_their_numbers(labels: list[str], expected: str) -> None:
    assert label_range(labels) == expected


def test_the_documentation_names_every_chunker_and_every_prediction() -> None:
    page = (CHECKOUT / "docs" / "chunking.md").read_text(encoding="utf-8")
    assert [name for name in CHUNKERS if f"| `{name}` |" not in page] == [], "the first table has no row"
    rows = [f"| {source.name} | {source.predicted_best} |" for source in SOURCES.values() if source.predicted_best]
    assert [row for row in rows if row not in page] == []


def test_reports_say_no_heading_twice_and_have_no_chunk_of_a_heading_alone() -> None:
    words = "The Keeper mends the ropes. " * 72
    head, first = "I. ROPES", f"A. Knots\n\n{words}".rstrip()
    text = f"{head}\n\n{first}\n\nB. Ends\n\nThe ends are burnt."
    start, middle = len(head) + 2, len(head) + 2 + len(first)
    parts = (
        Section(Span(0, len(text)), 1, "heading", "I. Ropes"),
        Section(Span(start, middle), 2, "heading", "A. Knots"),
        Section(Span(middle + 2, len(text)), 2, "heading", "B. Ends"),
    )
    source = document(text, parts)
    chunks = chunker("markdown_header_v1")(source)
    check(source, "markdown_header_v1", chunks)
    found = [(chunk.context, text[chunk.span.start : chunk.span.end][:12]) for chunk in chunks]
    outer, inner = "Harbors Act > I. Ropes", "Harbors Act > I. Ropes > A. Knots"
    rest = (inner, "The Keeper m")
    assert found == [("Harbors Act", f"{head}\n\nA."), rest, (outer, "B. Ends\n\nThe")]
