"""The index of all sources: what it says of each, what its days are counted from, and how it looks."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from runner.base.canonical import file_sha256, json_bytes, write_atomic
from runner.base.errors import InputError
from runner.base.figures import fitting_signed
from runner.base.places import CHECKOUT
from runner.base.records import parse_cell
from runner.commands.sources import sources
from runner.decide.policy import adopt_baseline
from runner.decide.roster import roster
from runner.eval_set.catalog import SOURCES
from runner.eval_set.lock import write_lock
from runner.eval_set.plan import default_plan_text
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import newest_version
from runner.report.index_page import index_page, sources_outside
from tests.conftest import called
from tests.support.example_results import BASELINE, BETTER, SHA, decision, results, row
from tests.support.full_results import full_receipt
from tests.support.outline import Outline

pytest_plugins = ["tests.support.browser"]

TODAY = "2026-03-31"
HOSTILE = "</td><script>window.hit = 1</script>\u202eleft \x00"


@pytest.fixture(name="versions")
def _versions(tmp_path):
    """The newest version of any source in a folder of this test."""
    return lambda name: newest_version(name, tmp_path / "eval-sets" / name)


@pytest.fixture(name="made")
def _made(versions, tmp_path):
    """The index of these versions, as it would lie in a folder beside them."""
    return lambda today=TODAY: index_page([*roster(versions), *sources_outside(versions)], today, tmp_path / "pages")


def begin(version, *, manifest=b"a manifest\n"):
    """An open version with a plan and a sample."""
    text = default_plan_text(version.source, rehearsal=False, version=version.number)
    write_atomic(version.folder / "plan.yaml", text.encode())
    write_atomic(version.corpus_path, manifest)
    return version


def decide(version, cell=BETTER, *, gain=0.043, finished="2026-03-01", **named):
    """The version decided for a cell of the example, locked; its results are the example's."""
    begin(version, **{name: named.pop(name) for name in ("manifest",) if name in named})
    found = results(row(BASELINE), row(BETTER, gain, p=0.01)).model_copy(
        update={"source": version.source.name, "version": version.number}
    )
    found = Results.model_validate_json(found.model_dump_json().replace(SHA, file_sha256(version.corpus_path)))
    receipt = full_receipt(found, finished_on=f"{finished}T20:00:00+00:00")
    for name, value in (("results", found), ("decision", decision(found, cell, **named)), ("receipt", receipt)):
        write_atomic(version.folder / f"{name}.json", json_bytes(value.model_dump()))
    write_atomic(version.folder / "results.html", b"a page\n")
    write_lock(version.folder)
    return found


class Rows(HTMLParser):
    """The texts of the cells of every table row, by the row's heading, and every link."""

    def __init__(self):
        super().__init__()
        self.rows, self.links, self.row, self.tags = [], [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        if tag == "tr":
            self.row = []
            self.rows.append(self.row)
        elif tag in ("td", "th"):
            self.row.append("")
        elif tag == "a":
            self.links.append(dict(attrs)["href"])

    def handle_endtag(self, tag):
        if tag == "tr":
            self.row = []

    def handle_data(self, data):
        if self.row:
            self.row[-1] = " ".join(f"{self.row[-1]} {data}".split())


def parsed(page):
    found = Rows()
    found.feed(page.decode())
    return found


def told(page, name):
    """The cells of a source's line in the first table."""
    lines = [cells for cells in parsed(page).rows[1:] if len(cells) == 7]
    return next(cells for cells in lines if cells[0].replace("_ ", "_").split()[1] == name)


def words(page):
    return " ".join(" ".join(Outline(page.decode()).text).split())


def test_the_same_files_and_the_same_day_give_the_same_bytes(versions, made):
    decide(versions("us_code"))
    assert made() == made()
    assert made("2026-04-01") != made()
    assert f"on {TODAY}" in words(made())


def test_sources_that_are_not_begun_stand_in_one_line_in_trigger_order_and_decided_ones_first(versions, made):
    roster = sorted((spec for spec in SOURCES.values() if spec.trigger_order), key=lambda spec: spec.trigger_order)
    line = made().decode().partition('id="not-begun">')[2].partition("</p>")[0]
    assert re.findall(r"<bdi>([^<]+)</bdi>", line) == [spec.name for spec in roster]
    last = roster[-1].name
    decide(versions(last))
    line = made().decode().partition('id="not-begun">')[2].partition("</p>")[0]
    assert f"<bdi>{last}</bdi>" not in line
    assert told(made(), last)


def test_where_nothing_is_decided_no_gain_is_drawn_and_the_first_source_is_next(made):
    page = made()
    n_sources = sum(bool(spec.trigger_order) for spec in SOURCES.values())
    assert f"0 of {n_sources} sources are decided" in words(page)
    first = min((spec for spec in SOURCES.values() if spec.policy == "evaluate" and spec.trigger_order), key=order)
    assert f"Next in the roster: {first.name}" in words(page)
    assert f"<bdi>{first.name}</bdi>" in page.decode().partition('id="not-begun">')[2].partition("</p>")[0]
    assert b'<svg class="strip"' not in page
    assert b'id="sources-caption"' not in page


def order(spec):
    return spec.trigger_order


def test_a_decided_cell_has_the_gain_and_the_interval_of_its_results(versions, made):
    found = decide(versions("us_code"))
    test = next(each.test for each in found.cells if each.cell == BETTER)
    low, high = test.simultaneous
    cells = told(made(), "us_code")
    ends = ", ".join(fitting_signed(end, low, high) for end in (low, high))
    assert f"{fitting_signed(0.043, low, high)} [{ends}], 95" in cells[3]
    assert "over the baseline" in cells[3]
    assert cells[2].startswith("minilm-l6-v2 x section_ aware_ bills_ v1 candidate; by A. Person , 2026-03-02 (29 days")
    assert f"decided {found.outcome.tier}" in cells[1]
    assert f"1 of {len(roster())} sources is decided" in words(made())


def test_a_baseline_that_was_kept_shows_the_best_other_cells_gain_as_one_that_was_not_chosen(versions, made):
    decide(versions("us_code"), BASELINE)
    assert "not chosen" in told(made(), "us_code")[3]
    assert "+0.04" in told(made(), "us_code")[3]


def test_a_baseline_by_policy_says_that_nothing_was_measured(versions, made):
    adopt_baseline(versions("gao_reports"), "A. Person", "", today="2026-01-02")
    cells = told(made(), "gao_reports")
    assert "baseline by policy" in cells[1]
    assert (cells[3], cells[5]) == ("nothing was measured", "no sample")


def test_the_observed_best_is_set_beside_the_predicted_one(versions, made):
    decide(versions("us_code"))
    said = told(made(), "us_code")[4].replace("_ ", "_")
    assert said == f"predicted {SOURCES['us_code'].predicted_best} observed, another {parse_cell(BETTER).chunker}"


def test_a_sample_is_as_old_as_the_first_evening_that_finished_with_it_says(versions, made, tmp_path):
    decide(versions("us_code"), finished="2026-03-01")
    assert told(made(), "us_code")[5] == "30 days or more drawn by 2026-03-01"
    second = replace(versions("us_code"), number=2)
    folder = second.folder.with_name("v2")
    decide(replace(second, folder=folder, record=folder), finished="2026-03-20")
    assert told(made(), "us_code")[5] == "30 days or more drawn by 2026-03-01"
    third = folder.with_name("v3")
    decide(replace(second, number=3, folder=third, record=third), finished="2026-03-30", manifest=b"another\n")
    assert told(made(), "us_code")[5] == "1 day or more drawn by 2026-03-30"


def test_a_sample_that_nothing_was_finished_with_has_no_age(versions, made):
    begin(versions("us_code"))
    assert told(made(), "us_code")[5] == "not known: nothing finished with it"


def test_an_open_version_says_what_it_has_and_how_to_go_on(versions, made):
    version = begin(versions("us_code"))
    line = next(cells for cells in parsed(made()).rows if len(cells) == 5 and cells[0] == "us_code")
    assert line[1:4] == ["1", "plan, sample", "queries, preregistered, labels, results"]
    assert line[4] == f"bin/per-source-eval.py run {version.flags}"
    assert "v1 open" in told(made(), "us_code")[1]


def test_a_decision_that_the_catalog_has_moved_on_from_is_stale_with_the_change(versions, made):
    decide(versions("us_code"))
    assert "stale" in told(made(), "us_code")[1]
    assert f"us_code : the production baseline is now {SOURCES['us_code'].baseline}, it was {BASELINE}" in words(made())


def test_links_lead_from_the_page_to_the_records_pages(versions, made, tmp_path):
    version = versions("us_code")
    decide(version)
    links = [link for link in parsed(made()).links if not link.startswith("#")]
    assert links == ["../eval-sets/us_code/v1/results.html"]
    assert (tmp_path / "pages" / links[0]).resolve() == version.folder / "results.html"


def test_a_source_outside_of_the_roster_is_shown_last_and_counted_nowhere(versions, made):
    decide(versions("demo"))
    rows = [cells for cells in parsed(made()).rows if len(cells) == 7]
    assert "outside of the roster" in rows[-1][0]
    assert f"0 of {len(roster())} sources are decided" in words(made())


def test_texts_of_people_are_shown_and_never_interpreted(versions, made):
    decide(versions("us_code"), decided_by=HOSTILE)
    page = made()
    assert "script" not in parsed(page).tags
    assert "⟨U+202E⟩left ⟨U+0000⟩" in told(page, "us_code")[2]


@pytest.mark.parametrize("today", ["yesterday", "2026-13-01", "2026-02-28"])
def test_a_day_that_is_none_or_lies_before_a_record_is_refused(versions, made, today):
    decide(versions("us_code"))
    with pytest.raises(InputError, match=today):
        made(today)


def test_the_command_writes_the_checkouts_index_where_it_is_told(tmp_path, capsys):
    path = tmp_path / "new" / "index.html"
    assert called(sources, "--html", path) == (0, "")
    assert capsys.readouterr().out == f"{path}\n"
    assert f"of {len(roster())} sources" in words(path.read_bytes())


@pytest.mark.parametrize("flags", [("--json",), ("--write",), ("--source=bills",)])
def test_the_index_goes_with_no_other_answer(tmp_path, flags, capsys):
    assert called(sources, f"--html={tmp_path / 'index.html'}", *flags)[0] == 2
    assert "--html" in capsys.readouterr().err or flags == ("--source=bills",)
    assert not (tmp_path / "index.html").exists()


@pytest.mark.parametrize("place", [CHECKOUT / "eval-sets" / "index.html", "index.json"])
def test_the_index_is_never_written_into_the_eval_sets_nor_as_another_kind_of_file(tmp_path, place):
    code, said = called(sources, f"--html={tmp_path / place}")
    assert (code, "Give --html another place" in said or ".html" in said) == (2, True)
    assert not Path(tmp_path / place).exists()


@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_has_no_script_fits_every_width_and_its_links_work(versions, made, opened, tmp_path, width):
    decide(versions("us_code"))
    begin(versions("bills"))
    path = tmp_path / "pages" / "index.html"
    write_atomic(path, made())
    shown = opened(path, viewport={"width": width, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    assert (shown.complaints, shown.requests) == ([], [path.as_uri()])
    shown.page.click("a.page")
    assert shown.page.inner_text("body") == "a page"
