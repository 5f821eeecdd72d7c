import json
from pathlib import Path

import pytest

from runner.base.canonical import file_sha256, read_jsonl, sha256
from runner.base.errors import InputError
from runner.base.records import Document, Span
from runner.eval_set.batches import Shown, make_row, read_batch, rebound, write_batches
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.labels import append_labels, load_labels
from runner.eval_set.preregistration import preregister
from runner.eval_set.version import load_queries
from runner.judge.answers import Importer
from runner.judge.second_reading import export_doubles
from runner.report.labels_page import _wholes, page, write_labels_page
from runner.report.page_frame import TEMPLATES

pytest_plugins = ["tests.support.browser"]

PROMPT = (TEMPLATES / "judge.md").read_text(encoding="utf-8")
HOSTILE = (
    "</p></li></ol><script>window.hit = 1; alert(1)</script><img src=https://example.org/x onerror='window.hit=2'>"
    "<style>body{background:url(https://example.org/y)}</style>\n"
    '{"grade": 3} &lt;b&gt; </title></textarea></script><!--<svg onload=alert(2)>\n'
    "\u202eright to left\u202c \x00 null \x1b[31m \u2028 \ufeff "
)


def row(text="One section.\n", *, query="a need", query_id="q01", doc_id="d1", title="An Act", batch="batch-0001"):
    document = Document(doc_id, text, title, "", "", "")
    return rebound(
        make_row("demo v1", sha256(PROMPT), (query_id, query), document, Shown((Span(0, len(text)),))), batch
    )


def made(rows, **named):
    return page(rows, PROMPT, **{"title": "demo v1", **named})


@pytest.fixture(name="frozen")
def _frozen(version):
    """The same version, preregistered before it has a batch."""
    preregister(version)
    return version


@pytest.fixture(name="batch")
def _batch(version):
    """A batch of five pairs of the small set, each document whole; the first one has several passages."""
    documents = sorted(corpus_documents(version, None), key=lambda document: -len(document.text))
    queries, prompt = load_queries(version.queries_path), file_sha256(version.judge_path)
    rows = [
        make_row(version.number_name, prompt, (query.id, query.text), document, Shown((Span(0, len(document.text)),)))
        for query, document in zip(queries[:5], documents, strict=False)
    ]
    (path,) = write_batches(version.judging, rows)
    return path


@pytest.fixture(name="begun")
def _begun(version, batch, opened):
    """The page of the batch, open, with a judge's name given."""
    shown = opened(write_labels_page(version, [batch], None), viewport={"width": 1000, "height": 700})
    shown.keyboard.type("Ann")
    shown.press("Enter")
    return shown


def downloaded(shown, folder):
    """The file that the page's button hands out, under the name that it proposes."""
    with shown.expect_download() as waiting:
        shown.click("#export")
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


def lines(path):
    return [fields for _, fields in read_jsonl(path)]


def answered(batch, grade):
    """A file with this grade for every row of a batch, named after it."""
    path = batch.with_name(f"{batch.stem}.answers.jsonl")
    rows = [{"query_id": r.query_id, "doc_id": r.doc_id, "grade": grade, "batch": r.batch} for r in read_batch(batch)]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


def counts(shown):
    return [int(shown.text(f"#{name}")) for name in ("count0", "count1", "count2", "count3", "left")]


# What is written.


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "There is no pair to judge"),
        ([row(), row()], "there twice"),
        ([row().model_copy(update={"prompt_sha256": "0" * 64})], "exported under another judge prompt"),
    ],
)
def test_rows_that_do_not_belong_on_one_page_are_refused(rows, said):
    with pytest.raises(InputError, match=said):
        made(rows)


def test_grades_are_called_what_the_prompt_calls_them_or_nothing():
    both = made([row(), row(batch="batch-0002")])
    assert b"touches it</span>" in both
    assert b'"file":"batch-0001-and-1-more.answers.jsonl"' in both
    bare = page([row().model_copy(update={"prompt_sha256": sha256("Grade 0 to 3.")})], "Grade 0 to 3.", title="t")
    assert b"caption-of" not in bare.split(b"<body>")[1]


def test_a_results_page_is_not_written_over(version, batch, command):
    results = version.record / "results.html"
    results.write_text("<html>the page of the results</html>")
    code, out, said = command("labels", "page", f"--output={results}", str(batch))
    assert (code, out) == (2, "")
    assert "which is committed" in said
    assert results.read_text() == "<html>the page of the results</html>"


def test_a_batch_that_was_edited_or_is_of_another_version_is_refused(version, batch, tmp_path):
    other = write_batches(
        tmp_path / "other", [one.model_copy(update={"version": "demo v7"}) for one in read_batch(batch)]
    )
    with pytest.raises(InputError, match=r"batch-0001 was exported for demo v7, not for demo v1"):
        write_labels_page(version, other, None)
    batch.write_text(batch.read_text().replace("apples", "pears"))
    with pytest.raises(InputError, match=r"batch-0001\.jsonl:\d: .* was edited after export"):
        write_labels_page(version, [batch], None)


def test_without_batches_or_a_prompt_it_is_said_what_brings_them(version, batch):
    version.judge_path.write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"judge-v1\.md cannot be read"):
        write_labels_page(version, [batch], None)
    batch.unlink()
    with pytest.raises(InputError, match=r"demo v1 has no batches yet\. Run bin/per-source-eval\.py run demo"):
        write_labels_page(version, [], None)


def test_without_batches_the_page_holds_those_that_wait_for_a_judge(version, batch):
    rows = read_batch(batch)
    write_batches(version.judging, [one.model_copy(update={"query_id": "q09"}) for one in rows[:1]])
    assert write_labels_page(version, [], None).name == "batch-0001-and-1-more.html"
    Importer(version).take_file(answered(batch, 1), judge="j", model="", judged_on="2026-01-31")
    assert write_labels_page(version, [], None).name == "batch-0002.html"
    (label,) = load_labels(version.labels_path)[:1]
    append_labels(version.labels_path, [label.model_copy(update={"batch": "batch-0002", "query_id": "q09"})])
    with pytest.raises(InputError, match=r"No batch of demo v1 waits for a judge"):
        write_labels_page(version, [], None)


def test_where_only_second_readings_wait_the_command_for_their_page_is_named(frozen, version, batch, command):
    Importer(version).take_file(answered(batch, 1), judge="first", model="", judged_on="2026-01-31")
    (double,) = export_doubles(version, load_labels(version.labels_path), 1.0).paths
    code, out, said = command("labels", "page")
    assert (code, out) == (2, "")
    assert "Only second readings of demo v1 wait, for somebody who has not judged these pairs" in said
    assert said.rstrip().endswith(str(double))
    assert command("labels", "page", str(double))[0] == 0
    Importer(version).take_file(answered(double, 2), judge="second", model="", judged_on="2026-01-31")
    assert "No batch of demo v1 waits for a judge" in command("labels", "page")[2]
    code, out, _ = command("labels", "double", "--share=1")
    assert (code, out.count("\n")) == (0, 1)
    assert "nothing is left for a second judge: of 5 judged pairs, those that a share of 1 takes are read" in out
    assert "A larger --share" not in out


# What a judge does.


def test_answers_given_by_keyboard_alone_become_labels(begun, version, batch, tmp_path):
    rows = read_batch(batch)
    assert begun.text("#query") == rows[0].query
    begun.press("p", "p", "Space", "r")
    begun.keyboard.type("Section 2 says it.")
    begun.press("Enter", "3")
    assert begun.text("#query") == rows[1].query
    begun.press("0", "1", "p", "m", "2")
    assert counts(begun) == [1, 1, 1, 1, 1]
    path = downloaded(begun, tmp_path)
    assert path.name == "batch-0001.answers.jsonl"
    written = lines(path)
    assert written[0] == {
        "batch": "batch-0001",
        "doc_id": rows[0].doc_id,
        "doubt": False,
        "evidence_sha256": rows[0].evidence_sha256,
        "grade": 3,
        "judge": "Ann",
        "passages": [2],
        "prompt_sha256": file_sha256(version.judge_path),
        "query_id": rows[0].query_id,
        "reason": "Section 2 says it.",
        "version": "demo v1",
    }
    assert [list(fields) for fields in written] == [sorted(written[0])] * 4
    assert Importer(version).take_file(path, judge="", model="", judged_on="2026-01-31").added == 4
    labels = load_labels(version.labels_path)
    assert [label.grade for label in labels] == [3, 0, 1, 2]
    assert {(label.judge, label.model, label.round, label.batch) for label in labels} == {("Ann", "", 1, "batch-0001")}
    second = rows[0].evidence[1]
    assert labels[0].spans == [[second.start, second.end]]
    assert labels[0].reason == "Section 2 says it."
    assert begun.complaints == []


def test_a_reload_goes_on_where_the_judge_was(begun):
    begun.press("1", "2", "p", "m", "r")
    begun.keyboard.type("half a sent")
    begun.reload()
    assert begun.text("#status") == "Resumed: 2 of 5 graded."
    assert begun.text("#place") == "Pair 3 of 5, batch-0001"
    assert begun.text("#judge") == "Ann"
    assert begun.input_value("#reason") == "half a sent"
    assert begun.get_attribute(".mark >> nth=0", "aria-pressed") == "true"
    assert counts(begun) == [0, 1, 1, 0, 3]
    assert begun.dialogs == [], "leaving a page whose answers are kept asks nothing"


def test_undo_takes_back_one_step_at_a_time_and_shows_where_it_was(begun):
    begun.press("1", "r")
    begun.keyboard.type("because")
    begun.press("Escape", "2", "x")
    assert begun.text("#status") == "Grade 2 for pair 2. 2 of 5 graded."
    begun.press("k", "x")
    assert counts(begun) == [0, 1, 0, 0, 4]
    begun.press("u")
    assert counts(begun) == [0, 1, 1, 0, 3]
    begun.press("u", "j", "u")
    assert (begun.text("#place"), begun.input_value("#reason")) == ("Pair 2 of 5, batch-0001", "")
    begun.press("u")
    assert (begun.text("#place"), counts(begun)) == ("Pair 1 of 5, batch-0001", [0, 0, 0, 0, 5])
    assert begun.is_disabled("#undo")


def test_keys_are_commands_only_where_they_are_meant(begun):
    for _ in range(4):
        begun.keyboard.down("3")
    begun.keyboard.up("3")
    assert counts(begun) == [0, 0, 0, 1, 4], "a key that is held down grades one pair"
    begun.press("r")
    begun.keyboard.type("j 3 u x?")
    assert begun.input_value("#reason") == "j 3 u x?"
    begun.press("Escape", "?")
    begun.uncheck("#letters")
    begun.press("Escape", "3", "j")
    assert (begun.text("#place"), counts(begun)) == ("Pair 2 of 5, batch-0001", [0, 0, 0, 1, 4])
    begun.press("ArrowRight")
    begun.click("#grade2")
    assert counts(begun) == [0, 0, 1, 1, 3]


def test_a_judge_named_by_the_page_is_not_asked_and_half_an_emoji_spoils_no_file(version, batch, opened, tmp_path):
    shown = opened(write_labels_page(version, [batch], None, judge="Bob <b>"))
    shown.evaluate("""() => {
      const reason = document.getElementById("reason");
      reason.value = "cut \\ud83d";
      reason.dispatchEvent(new Event("input"));
    }""")
    shown.press("2")
    assert shown.text("#judge") == "Bob <b>"
    assert not shown.is_visible("#rename")
    (fields,) = lines(downloaded(shown, tmp_path))
    assert (fields["judge"], fields["reason"]) == ("Bob <b>", "cut \ufffd")


def test_two_windows_of_one_page_show_the_same_answers(begun, version, opened):
    beside = opened(version.judging / "batch-0001.html", beside=begun)
    beside.press("2")
    begun.wait_for_selector("#count2:text-is('1')")
    begun.press("j", "1")
    beside.wait_for_selector("#count1:text-is('1')")
    assert counts(beside) == counts(begun)


# What can go wrong.


BLOCKED = """Object.defineProperty(window, "localStorage", {
  get() { throw new DOMException("denied", "SecurityError") } })"""
FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError') }"


@pytest.mark.parametrize(("script", "name"), [(BLOCKED, "SecurityError"), (FULL, "QuotaExceededError")])
def test_a_browser_that_keeps_nothing_is_told_and_leaving_is_warned_of(version, batch, opened, tmp_path, script, name):
    shown = opened(write_labels_page(version, [batch], None, judge="Ann"), before=script)
    shown.press("2", "1")
    assert shown.text("#warning") == (
        f"This browser does not keep your answers ({name}). "
        "Go on, but download them before you close or reload the page."
    )
    assert counts(shown) == [0, 1, 1, 0, 3]
    shown.reload()
    assert shown.dialogs == ["beforeunload"]
    shown.press("3")
    assert [fields["grade"] for fields in lines(downloaded(shown, tmp_path))] == [3]
    shown.reload()
    assert shown.dialogs == ["beforeunload"]


@pytest.mark.parametrize("kept", ["{", "7", "null", '{"judge": "Ann", "answers": [{"grade": 9}]}'])
def test_what_cannot_be_read_of_an_earlier_visit_is_set_aside(begun, kept):
    key = json.loads(begun.text_content("#facts"))["key"]
    begun.evaluate("([key, kept]) => localStorage.setItem(key, kept)", [key, kept])
    begun.reload()
    assert begun.text("#warning").endswith("cannot be read and was set aside; judging begins anew.")
    assert begun.is_visible("#who")
    assert begun.evaluate("key => localStorage.getItem(`${key} unreadable`)", key) == kept


def hostile(folder):
    """A page whose every text is hostile, in a file; the second pair's passage is one long line."""
    long = row(query_id="q02", title="y" * 5_000)
    long = long.model_copy(update={"evidence": [long.evidence[0].model_copy(update={"text": "x" * 1_000_000})]})
    rows = [
        row(HOSTILE * 3, query=HOSTILE, title=HOSTILE, doc_id="<i>d1</i>"),
        long,
        row(HOSTILE * 3, query_id="</script>", query="\u05d0\u05d1 right to left"),
    ]
    path = folder / "hostile.html"
    path.write_bytes(made(rows, title=HOSTILE, judge=HOSTILE))
    return path


def test_hostile_text_is_shown_and_does_nothing(opened, tmp_path):
    path = hostile(tmp_path)
    shown = opened(path, viewport={"width": 360, "height": 640})
    assert "<script>window.hit = 1; alert(1)</script>" in shown.text("#query")
    assert "⟨U+202E⟩right to left⟨U+202C⟩ ⟨U+0000⟩ null ⟨U+001B⟩[31m ⟨U+2028⟩ ⟨U+FEFF⟩" in shown.text(
        ".passage >> nth=0"
    )
    shown.press("1", "2", "3")
    written = lines(downloaded(shown, tmp_path))
    assert [(fields["query_id"], fields["doc_id"]) for fields in written] == [
        ("q01", "<i>d1</i>"),
        ("q02", "d1"),
        ("</script>", "d1"),
    ]
    shown.press("k")
    assert len(shown.text_content(".passage")) == 1_000_000
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    assert shown.evaluate("window.hit") is None
    assert [url for url in shown.requests if not url.startswith(("file:", "blob:"))] == []
    assert (shown.dialogs, shown.complaints) == ([], [])


def test_without_script_the_pairs_are_a_list_to_read(opened, tmp_path):
    text = "Every grower of apples shall keep a book of frosts. " * 6 + "\n"
    path = tmp_path / "list.html"
    path.write_bytes(made([row(text, query="frost books"), row(text, query="apples", query_id="q02")]))
    shown = opened(path, java_script_enabled=False)
    seen = shown.text("body")
    assert "Without JavaScript this page is a list to read." in seen
    assert seen.index("frost books") < seen.index("keep a book of frosts") < seen.index("apples\n")
    assert not shown.is_visible("#desk")


# Who can use it.


def test_a_narrow_screen_scrolls_in_one_direction_and_keeps_the_grades_in_sight(version, batch, opened):
    narrow = {"width": 360, "height": 640}
    shown = opened(write_labels_page(version, [batch], None, judge="Ann"), viewport=narrow, has_touch=True)
    shown.tap("#grade1")
    assert shown.evaluate("document.documentElement.scrollWidth") == 360
    for grade in range(4):
        box = shown.locator(f"#grade{grade}").bounding_box()
        assert min(box["width"], box["height"]) >= 24
        assert box["y"] + box["height"] <= 640


FOCUSED = """() => {
  const one = document.activeElement;
  return [one.id || one.className || one.tagName, getComputedStyle(one).outlineStyle];
}"""


def test_tab_reaches_every_control_and_shows_where_it_is(begun):
    begun.press("2", "k")
    reached, unseen = set(), []
    for _ in range(40):
        begun.press("Tab")
        control, outline = begun.evaluate(FOCUSED)
        reached.add(control)
        if outline == "none" and control != "BODY":
            unseen.append(control)
    controls = {"export", "undo", "help", "only", "rename", "mark", "reason", "back", "clear", "next"}
    assert {*controls, *(f"grade{grade}" for grade in range(4))} <= reached
    assert unseen == []


def test_names_and_live_regions_are_there_for_screen_readers(begun):
    tree = begun.locator("body").aria_snapshot()
    for role in (
        'progressbar "Pairs graded"',
        'button "Passage 1 supports the grade"',
        'textbox "Reason, one short sentence"',
        'button "2 serves it"',
        'checkbox "Not graded yet"',
    ):
        assert role in tree
    begun.press("2")
    assert begun.get_by_role("status").inner_text() == "Grade 2 for pair 1. 1 of 5 graded."
    assert begun.evaluate("document.activeElement.id") == "query"
    assert Path(begun.url.removeprefix("file://")).name == "batch-0001.html"


LONG = f"The beginning.\n{'Filler about ledgers. ' * 900}\nThe warden decides it <b>here</b>.\n"


@pytest.fixture(name="long")
def _long():
    """A row that shows the first and the last words of a document, and one that shows a document whole."""
    shown = Shown((Span(0, 15), Span(len(LONG) - 30, len(LONG) - 10)), "a rule")
    cut = make_row("demo v1", sha256(PROMPT), ("q01", "who decides"), Document("d1", LONG, "An Act", "", "", ""), shown)
    return [rebound(cut, "batch-0001"), row(query_id="q02", doc_id="d2")]


def test_the_whole_document_stands_on_a_key_and_a_doubt_is_taken_where_text_is_left_out(long, opened, tmp_path):
    path = tmp_path / "cut.html"
    path.write_bytes(made(long, judge="Ann", documents={"d1": LONG, "d2": "One section.\n"}))
    shown = opened(path)
    assert shown.text("#n-left-out") == f"{len(LONG) - 35:,}"
    shown.press("w")
    shown.wait_for_selector("#whole[open]")
    assert shown.text_content("#whole-text") == LONG
    shown.press("3", "Escape", "d", "1")
    assert shown.is_hidden("#left-out")
    shown.press("d", "w")
    assert shown.text("#status") == "All of the document is shown."
    shown.press("2")
    given = lines(downloaded(shown, tmp_path))
    assert [(one["grade"], one["doubt"]) for one in given] == [(1, True), (2, False)]
    shown.reload()
    shown.press("k")
    assert shown.text("#grade-now") == "grade 1, in doubt"
    assert shown.complaints == []


@pytest.mark.parametrize(("documents", "why"), [(None, "its archive was missing"), ({}, "too large for this page")])
def test_a_page_without_a_whole_document_says_why(long, opened, tmp_path, documents, why):
    path = tmp_path / "cut.html"
    path.write_bytes(made(long, judge="Ann", documents=documents))
    shown = opened(path)
    shown.press("w")
    assert why in shown.text("#status")


def test_whole_documents_beyond_the_limit_are_left_out_of_a_page(long, monkeypatch):
    texts = {"d1": LONG}
    assert set(_wholes(long, texts)) == {"d1"}
    monkeypatch.setattr("runner.report.labels_page.LARGEST_WHOLES", 50)
    assert _wholes(long, texts) == {}
