"""Two results side by side on one page: what it says of their figures, what it refuses, and how it looks."""

import os
import re

import pytest

from runner.base.canonical import file_sha256, json_bytes, read_json, rounded, sha256, write_atomic
from runner.base.errors import InputError, IntegrityError
from runner.base.figures import fitting, fitting_signed, said, signed
from runner.commands.grade import grade
from runner.commands.sources import sources
from runner.commands.version import render
from runner.eval_set.catalog import SOURCES
from runner.eval_set.lock import lock_over, write_lock
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.decision import Lock
from runner.eval_set.shapes.results import Results
from runner.eval_set.shapes.versions import QueriesKept
from runner.report.comparison.compared import compared_results
from runner.report.comparison.file import write_html
from runner.report.comparison.inputs import Pair, Scored, Side, pair_of
from runner.report.comparison.page import (
    MOST_QUERIES,
    comparison_page,
    moved_queries,
    pair_forest,
    write_comparison,
)
from runner.report.rerender import check_page, write_page
from runner.report.results_page.render import TEMPLATE_VERSION
from tests.conftest import called
from tests.support.example_bulk import FAULT, FLAT, MOVED, N, arm, asked, made, report, scored
from tests.support.example_results import BASELINE, BETTER, HYBRID, SPARSE, decision
from tests.support.outline import Outline
from tests.support.small_set import make_version

pytest_plugins = ["tests.support.browser"]

HOSTILE = "</td><script>window.hit = 1</script><img src=x onerror='window.hit=2'>\u202eleft \x00"
OTHER = "cd" * 32


def side(found, decision=None):
    return Side(found, sha256(json_bytes(found.model_dump())), decision)


def pair(before=None, now=None):
    later = scored(BASELINE, FLAT), scored(BETTER, MOVED, gain=0.03)
    return Pair(side(now or made(*later, number=2)), side(before or made()))


def compared(before, now):
    return compared_results(side(before), side(now))


def reading(before, now):
    found = compared(before, now).reading
    return found.level, " ".join(found.sentences)


def read(page):
    found = Outline(page.decode())
    return " ".join(" ".join(found.text).split()), [tag for tag, _ in found.elements]


def put(folder, found, *, lock=True):
    """A record of these results, decided and locked."""
    plan = default_plan_text(SOURCES["demo"], rehearsal=found.kind == "rehearsal", version=found.version)
    write_atomic(folder / "plan.yaml", plan.encode())
    write_atomic(folder / "results.json", json_bytes(found.model_dump()))
    write_atomic(folder / "decision.json", json_bytes(decision(found).model_dump()))
    if lock:
        write_lock(folder)


@pytest.fixture(name="v2")
def _v2(tmp_path):
    """The second of two decided versions, its rehearsal beside it."""
    first = make_version(tmp_path)
    put(first.folder, made())
    put(first.folder.with_name("v2"), made(scored(BASELINE, FLAT), scored(BETTER, MOVED, gain=0.03), number=2))
    rehearsal = made(scored(BASELINE, FLAT), scored(SPARSE, FLAT, gain=-0.1), number=2, kind="rehearsal")
    empty = rehearsal.labels.model_copy(update={"lines": 0, "sha256": sha256(b"")})
    put(first.folder.with_name("v2") / "rehearsal", rehearsal.model_copy(update={"labels": empty}))
    return make_version(tmp_path)


def command(version, *arguments):
    return called(render, "--source=demo", f"--eval-set-path={version.folder.parent}", *arguments)


def put_report(record, found, day="2026-03-02"):
    folder = record / "post-bulk" / day
    found = found.model_copy(update={"lock_sha256": file_sha256(record / "lock.json")})
    write_atomic(folder / "post_bulk.json", json_bytes(found.model_dump()))
    lock: Lock = lock_over(folder, ["post_bulk.json"])
    write_atomic(folder / "lock.json", json_bytes(lock.model_dump()))
    return folder


def test_the_same_two_files_give_the_same_bytes_whoever_read_them():
    before, now = made(), made(scored(BASELINE, FLAT), scored(BETTER, MOVED, gain=0.03), number=2)
    lenient = Side(Scored.model_validate(rounded(before.model_dump())), sha256(json_bytes(before.model_dump())))
    page = comparison_page(Pair(side(now), side(before)))
    assert comparison_page(Pair(side(Results.model_validate(now.model_dump())), lenient)) == page


def test_every_figure_of_a_common_cell_is_that_of_its_own_results():
    before, now = made(), made(scored(BASELINE, FLAT), scored(BETTER, MOVED, gain=0.03), number=2)
    text, _ = read(comparison_page(Pair(side(now), side(before))))
    for found in (before, now):
        for cell in found.cells:
            for measure in ("ndcg@10", "recall@10", "mrr"):
                score = cell.scores[measure]
                ends = (score.low, score.high)
                low, high = (fitting(end, *ends) for end in ends)
                assert f"{fitting(score.mean, *ends)} [{low}, {high}]" in text


def test_a_movement_is_paired_by_query_with_its_interval_and_its_wins_ties_and_losses():
    found = {each.name: each for each in compared(pair().before.results, pair().now.results).rows}
    moved = found[BETTER].moved["ndcg@10"]
    assert (moved.n_queries, moved.wins, moved.ties, moved.losses) == (N, 10, 14, 1)
    assert moved.mean == pytest.approx(sum(MOVED) / N / 100 - 0.5)
    assert moved.low < moved.mean < moved.high
    assert not found[BETTER].same_run
    assert found[BASELINE].same_run
    text, _ = read(comparison_page(pair()))
    assert f"{fitting_signed(moved.mean, moved.low, moved.high)} [" in text
    assert "10 / 14 / 1" in text
    assert "no query moved" in text


def test_figures_of_results_that_were_asked_the_same_may_be_read_as_those_of_cells():
    level, said = reading(made(), made(number=2))
    assert level == "yes"
    assert "figures differ only where cells, or their runs, do" in said


def test_other_labels_alone_are_told_from_another_question():
    level, said = reading(made(), made(number=2, labels={"sha256": OTHER, "lines": 70}))
    assert level == "with care"
    assert "where a run is the same, whatever moved is of labels alone" in said


@pytest.mark.parametrize(
    ("changes", "name", "measures"),
    [
        ({"queries": asked(changed=(3,))}, "queries", ("ndcg@10", "recall@10", "mrr")),
        ({"corpus": {"manifest_sha256": OTHER}}, "documents", ()),
        ({"judge_prompt_sha256": OTHER}, "the judge's instructions", ("ndcg@10", "recall@10", "mrr")),
        ({"plan": {"relevant_grade": 1}}, "the relevant grade", ("ndcg@10",)),
    ],
)
def test_what_was_asked_otherwise_is_named_and_moves_nothing_that_it_makes_incomparable(changes, name, measures):
    now = made(number=2, **changes)
    level, said = reading(made(), now)
    assert (level, f"Not the same on both sides: {name}." in said) == ("no", True)
    moved = compared(made(), now).rows[0].moved
    assert tuple(measure for measure in moved if moved[measure]) == measures
    assert ("No movement is given" in said) == (not measures)


def test_a_query_in_other_words_is_in_no_movement():
    now = made(scored(BASELINE, FLAT), scored(BETTER, MOVED, gain=0.03), number=2, queries=asked(changed=(20,)))
    found = compared(made(), now)
    moved = next(each for each in found.rows if each.name == BETTER).moved["ndcg@10"]
    assert (moved.n_queries, moved.losses) == (N - 1, 0)
    assert found.queries == QueriesKept(common=N - 1, changed=["q20"], new=[], gone=[])
    assert "q20" in read(comparison_page(Pair(side(now), side(made()))))[0]


def test_other_baselines_are_named_since_gains_are_over_them():
    now = made(number=2, plan={"baseline": SPARSE})
    level, said = reading(made(), now)
    assert level == "yes"
    assert f"over {BASELINE} in version 1 and over {SPARSE} in version 2" in said


def test_every_setting_that_differs_is_a_row_and_groups_of_settings_show_what_differs_in_them():
    plan = made().plan
    rule = plan.rule.model_copy(update={"min_gain": 0.05})
    rows = {each.what: each for each in compared(made(), made(number=2, plan={"rule": rule})).asked}
    assert rows["Rule"] == ("Rule", {"min_gain": 0.02}, {"min_gain": 0.05}, False)
    assert all(each.same for what, each in rows.items() if what != "Rule")


def test_a_cell_of_one_side_alone_has_its_own_row_with_one_mark():
    now = made(scored(BASELINE, FLAT), scored(HYBRID, MOVED, gain=0.02), number=2)
    found = compared(made(), now)
    assert [each.name for each in found.rows] == [*(cell.cell for cell in now.cells), BETTER]
    drawn = {each.name: each for each in pair_forest(found).rows}
    assert (drawn[HYBRID].before, drawn[BETTER].now, drawn[BETTER].moved) == (None, None, None)
    text, _ = read(comparison_page(Pair(side(now), side(made()))))
    assert "only in version 2" in text
    assert "only in version 1" in text


def test_marks_stand_in_the_order_of_what_they_show_and_both_sides_on_one_axis():
    drawn = pair_forest(compared(pair().before.results, pair().now.results))
    marks = [mark.place for each in drawn.rows for mark in (each.before, each.now)]
    for mark in marks:
        assert 0 < mark.left <= mark.at <= mark.right < 100
    zero = drawn.moved.zero
    for each in drawn.rows:
        text = each.moved.texts[0]
        assert (each.moved.place.at > zero) == text.startswith("+")
    assert marks[0].at != marks[1].at


def test_queries_that_moved_most_come_first_with_their_sign():
    found = moved_queries(compared(pair().before.results, pair().now.results))
    assert (found.moved, found.of, found.cells) == (11, N, 2)
    first, second = found.rows[:2]
    assert (first.id, first.before, first.now, first.moved) == ("q20", "0.50", "0.20", signed(-0.3, 2))
    assert (second.id, second.moved, second.counts) == ("q10", "+0.10", (1, 1, 0))
    assert first.mean == signed(-0.15, 2)


def test_of_many_queries_that_moved_the_page_shows_the_first_and_counts_the_rest():
    now = made(scored(BASELINE, [60] * N), scored(BETTER, FLAT, gain=0.03), number=2)
    found = moved_queries(compared(made(), now))
    assert (len(found.rows), found.moved) == (MOST_QUERIES, N)
    assert f"The {MOST_QUERIES} that moved furthest of {N}" in read(comparison_page(Pair(side(now), side(made()))))[0]


def test_both_verdicts_and_the_decisions_that_rest_on_them_are_side_by_side():
    before, now = made(), made(number=2)
    text, _ = read(comparison_page(Pair(side(now, decision(now)), side(before))))
    assert text.count(said(before.outcome.sentence)) == 2
    assert "by A. Person , 2026-03-02" in text
    assert "it is cheap" in text
    assert text.count("none rests on these results") == 1


def test_a_provisional_side_says_so():
    before = made(provisional=True)
    text, _ = read(comparison_page(Pair(side(made(number=2)), side(before))))
    assert "version 2 beside version 1, provisional" in text
    assert "its figures may still move" in text


def test_texts_from_queries_and_people_are_shown_and_never_interpreted():
    queries = [query.model_copy(update={"text": HOSTILE}) for query in asked()]
    later = scored(BASELINE, FLAT), scored(BETTER, MOVED, gain=0.03)
    now = made(*later, number=2, queries=queries)
    said = decision(now, decided_by=HOSTILE, reason=HOSTILE)
    page = comparison_page(Pair(side(now, said), side(made(queries=queries))))
    text, tags = read(page)
    assert {"script", "img"}.isdisjoint(tags)
    assert "<script>window.hit = 1</script>" in text
    assert "⟨U+202E⟩left ⟨U+0000⟩" in text
    assert "\u202e" not in page.decode()


def test_every_search_of_the_substrate_stands_beside_its_cell():
    now = made()
    bulk = report(now, findings=[FAULT])
    page = comparison_page(Pair(side(now), bulk=bulk, bulk_sha256=OTHER))
    text, _ = read(page)
    assert "With care." in text
    assert "3 hits of the searches' top tens were never graded" in text
    assert "Verdict: 1 fault" in text
    assert "torn chunks fault 2 9 Two are torn." in text
    assert "0.400 to 0.700" in text
    assert text.count("−0.010 [−0.040, +0.020]") >= 6
    assert page == comparison_page(Pair(side(now), bulk=bulk, bulk_sha256=OTHER))
    assert OTHER in text


def test_a_search_that_the_record_has_no_cell_for_is_shown_alone():
    now = made()
    bulk = report(now, arm("vec0 bq + rescore", FLAT))
    text, _ = read(comparison_page(Pair(side(now), bulk=bulk, bulk_sha256=OTHER)))
    assert "the record has no such cell" in text
    assert "None can be told" in text


def test_documents_without_chunks_are_named_in_the_reading():
    now = made()
    found = report(now, arm("vec0 bq + rescore", FLAT, BASELINE))
    missing = found.model_copy(update={"coverage": found.coverage.model_copy(update={"with_chunks": 1})})
    whole = found.model_copy(update={"coverage": found.coverage.model_copy(update={"with_chunks": 3})})
    text, _ = read(comparison_page(Pair(side(now), bulk=missing, bulk_sha256=OTHER)))
    assert "With care." in text
    assert "2 of the record's 3 documents have no chunks in the substrate, so no search can find them." in text
    text, _ = read(comparison_page(Pair(side(now), bulk=whole, bulk_sha256=OTHER)))
    assert "Yes. Both answered the same queries" in text
    assert "every hit of the top ten is graded" in text


def test_an_earlier_version_is_compared_by_its_number(v2):
    path = write_comparison(v2, "v1", None)
    assert path == v2.work / "comparison-with-v1.html"
    before = Side(
        Scored.model_validate(read_json(v2.folder.with_name("v1") / "results.json")),
        sha256((v2.folder.with_name("v1") / "results.json").read_bytes()),
        decision(made()),
    )
    now = Results.model_validate(read_json(v2.record / "results.json"))
    assert path.read_bytes() == comparison_page(Pair(side(now, decision(now)), before))


def test_a_rehearsal_and_its_production_are_compared_from_either(v2, tmp_path):
    assert pair_of(v2, "rehearsal").before.results.kind == "rehearsal"
    rehearsal = make_version(tmp_path, rehearsal=True)
    found = pair_of(rehearsal, "production")
    assert (found.before.results.kind, found.now.results.kind) == ("production", "rehearsal")
    text, _ = read(comparison_page(found))
    assert "REHEARSAL rehearsal of version 2" in text
    assert "A rehearsal's decides nothing." in text


def test_a_results_file_of_another_release_is_compared_by_its_path(v2, tmp_path):
    value = read_json(v2.record / "results.json") | {"schema_version": 3, "unheard_of": [1]}
    value["kind"] = "exploration"
    del value["lists"]
    path = tmp_path / "explored" / "results.json"
    write_atomic(path, json_bytes(value))
    found = pair_of(v2, str(path))
    assert found.before.name == "exploration on version 2"
    assert write_comparison(v2, str(path), None).name == "comparison-with-explored.html"


def test_a_report_on_the_substrate_is_found_by_its_day_and_the_newest_without(v2):
    now = Results.model_validate(read_json(v2.record / "results.json"))
    older = put_report(v2.record, report(now), "2026-03-02")
    put_report(v2.record, report(now, findings=[FAULT]), "2026-03-09")
    assert pair_of(v2, "post-bulk").bulk.faults == [FAULT]
    assert pair_of(v2, "post-bulk/2026-03-02").bulk.faults == []
    assert pair_of(v2, str(older / "post_bulk.json")).bulk.faults == []
    assert write_comparison(v2, "post-bulk/2026-03-02", None).name == "comparison-with-post-bulk-2026-03-02.html"


def test_a_report_over_other_results_is_an_integrity_error(v2):
    put_report(v2.record, report(made(number=7)))
    with pytest.raises(IntegrityError, match=r"post_bulk\.json says"):
        pair_of(v2, "post-bulk")


@pytest.mark.parametrize(
    ("against", "message"),
    [
        ("v9", "demo v9 has no results to compare"),
        ("v2", "holds the results that it would be compared with"),
        ("production", "with --rehearse the rehearsal is compared with --against production"),
        ("post-bulk", "there: none yet"),
        ("nothing.json", "neither a file nor a name that --against takes"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_the_way_out(v2, against, message):
    code, said = command(v2, f"--against={against}")
    assert (code, message in said) == (2, True)


def test_a_file_that_is_no_results_is_refused_with_the_field_that_is_missing(v2, tmp_path):
    write_atomic(tmp_path / "other.json", b'{"kind": "production"}')
    with pytest.raises(InputError, match="that can be compared: source"):
        pair_of(v2, str(tmp_path / "other.json"))


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_an_edited_record_on_either_side_is_an_integrity_error(v2, name):
    path = v2.folder.with_name(name) / "results.json"
    path.write_bytes(
        path.read_bytes().replace(b"invented", b"edited").replace(b'"provisional": false', b'"provisional": true')
    )
    code, said = command(v2, "--against=v1")
    assert (code, "A frozen eval set changed" in said) == (4, True)


def test_a_comparison_is_never_written_into_an_eval_set_or_over_another_kind_of_file(v2, tmp_path):
    for place in (v2.folder / "comparison.html", v2.folder.parent / "x.html", tmp_path / "page.json", tmp_path):
        assert command(v2, "--against=v1", f"--output={place}")[0] == 2
    assert command(v2, "--against=v1", f"--output={tmp_path / 'new' / 'page.html'}") == (0, "")
    assert (tmp_path / "new" / "page.html").read_bytes() == write_comparison(v2, "v1", None).read_bytes()


def test_render_with_passages_is_the_local_copy_with_the_same_receipt_and_place(v2, tmp_path, monkeypatch, capsys):
    seen = []
    place = "runner.report.rerender.write_local_copy"
    monkeypatch.setattr(place, lambda *given: seen.append(given) or "there")
    assert command(v2, "--passages", "--receipt=r.json", f"--output={tmp_path / 'x.html'}") == (0, "")
    assert capsys.readouterr().out == "there\n"
    version, receipt, output = seen[0]
    assert (version.folder, str(receipt), output) == (v2.folder, "r.json", tmp_path / "x.html")


@pytest.mark.parametrize(
    "flags",
    [
        ("--against=v1", "--check"),
        ("--against=v1", "--passages"),
        ("--passages", "--check"),
        ("--against=v1", "--receipt=r.json"),
        ("--check", "--output=x.html"),
    ],
)
def test_flags_of_render_that_do_not_go_together_are_refused(v2, flags, capsys):
    assert command(v2, *flags)[0] == 2
    assert re.search("one at a time|leave out", capsys.readouterr().err)


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_has_no_script_fits_every_width_and_draws_what_its_figures_say(opened, tmp_path, width):
    path = tmp_path / "page.html"
    path.write_bytes(comparison_page(pair()))
    shown = opened(path, viewport={"width": width, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert (shown.complaints, shown.requests) == ([], [path.as_uri()])
    # The axis is read back from its ticks; a mark must stand where its figure says.
    places = shown.evaluate(
        """() => {
      const middle = (el) => { const box = el.getBoundingClientRect(); return box.left + box.width / 2; };
      const seen = (el) => el.getBoundingClientRect().width > 0;
      const rulers = [...document.querySelectorAll(".forest .levels .ruler")].filter(seen);
      const ticks = [...rulers[0].querySelectorAll(".tick")].map((el) => [Number(el.textContent), middle(el)]);
      const marks = [...document.querySelectorAll(".forest .levels .strip .mark")].map(middle);
      return [ticks, marks];
    }"""
    )
    (first, at_first), (last, at_last) = places[0][0], places[0][-1]
    read_back = [first + (at - at_first) / (at_last - at_first) * (last - first) for at in places[1]]
    found = compared(pair().before.results, pair().now.results)
    expected = [side.scores["ndcg@10"].mean for each in found.rows for side in (each.before, each.now)]
    assert read_back == pytest.approx(expected, abs=0.005)


GENERATOR = '<meta name="generator" content="per-source-eval, {}">'


@pytest.mark.parametrize("into", ["v1/results.html", "v9/rehearsal/page.html", "link/page.html"])
def test_no_page_is_written_into_any_version_whatever_its_eval_set(v2, tmp_path, monkeypatch, into):
    elsewhere = tmp_path / "others"
    (elsewhere / "v9" / "rehearsal").mkdir(parents=True)
    (elsewhere / "v9" / "plan.yaml").write_text("")
    (elsewhere / "link").symlink_to(v2.folder.with_name("v1"))
    path = (v2.folder.parent if into.startswith("v1") else elsewhere) / into
    monkeypatch.setattr("runner.report.rerender._page", lambda version, receipt: b"a page")
    writers = (
        lambda: write_html(path, b"a page", v2.work),
        lambda: write_page(v2, None, path),
        lambda: write_comparison(v2, "v1", path),
        lambda: grade([f"--playground={path}"]),
        lambda: sources([f"--html={path}"]),
    )
    for write in writers:
        with pytest.raises(InputError, match="which is committed: only a run writes there"):
            write()
    assert not path.exists()


def test_a_page_takes_the_place_of_an_earlier_one_of_its_kind_and_of_nothing_else(tmp_path):
    page, other = (GENERATOR.format(kind).encode() for kind in ("page template 8", "playground"))
    path = write_html(tmp_path / "page.html", page, None)
    assert write_html(path, page.replace(b"8", b"9"), None).read_bytes().endswith(b'9">')
    with pytest.raises(InputError, match="is no page of this kind"):
        write_html(path, other, None)
    (tmp_path / "mine.html").write_bytes(b"mine")
    with pytest.raises(InputError, match="is no page of this kind"):
        write_html(tmp_path / "mine.html", page, None)
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(InputError, match="is no page of this kind"):
        write_html(tmp_path / "pipe.html", page, None)


def test_links_in_a_circle_are_an_input_error_with_a_way_out(tmp_path):
    (tmp_path / "loop.html").symlink_to(tmp_path / "loop.html")
    with pytest.raises(InputError, match="Give --html another place"):
        write_html(tmp_path / "loop.html", b"", None, flag="--html")


@pytest.mark.parametrize("number", [TEMPLATE_VERSION - 1, TEMPLATE_VERSION + 1])
def test_a_page_of_another_release_is_held_by_its_lock_and_not_compared(v2, number):
    path = v2.record / "results.html"
    path.write_text(GENERATOR.format(f"page template {number}"))
    assert f"made by page template {number}" in check_page(v2, None)
    (v2.record / "lock.json").unlink()
    with pytest.raises(InputError, match=f"page template {number}, this release makes .* no lock holds it"):
        check_page(v2, None)


def test_a_page_that_is_a_pipe_is_not_read(v2):
    (v2.record / "results.html").unlink(missing_ok=True)
    os.mkfifo(v2.record / "results.html")
    with pytest.raises(InputError, match="not a regular file"):
        check_page(v2, None)


def test_a_version_without_results_names_those_that_have_some_and_version_n_reaches_them(v2, tmp_path):
    for name in ("results.json", "lock.json"):
        (v2.record / name).unlink()
    code, said = command(v2)
    assert (code, "results are in v1, which --version N asks for" in said) == (2, True)
    code, said = command(v2, "--version=7")
    assert (code, "there: 1, 2" in said) == (2, True)
    code, said = command(v2, "--version=1", f"--receipt={tmp_path / 'none.json'}")
    assert (code, "Give --receipt another file" in said) == (2, True)
    code, said = command(v2, "--version=1")
    assert (code, "v1/receipt.json does not exist. Restore it from git" in said) == (2, True)


def test_a_rehearsal_without_results_is_told_the_command_that_brings_them(v2):
    (v2.folder / "rehearsal" / "results.json").unlink()
    (v2.folder / "rehearsal" / "lock.json").unlink()
    code, said = command(v2, "--rehearse", "--against=production")
    assert (code, "--rehearse first" in said) == (2, True)
