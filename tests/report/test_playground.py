"""The playground's script says what the null gate says, and its page works by itself."""

import json
import math
import random
import re
from dataclasses import asdict, replace

import pytest

from runner.commands.main import called
from runner.report.playground import ALPHA, CASES, PREDICTORS, SLIDERS, TRIALS, Settings, bench, page, verdict

pytest_plugins = ["tests.support.browser"]

CORNERS = [
    Settings("engine", 1.0, labels=4, queries=20),
    Settings("engine", queries=1, labels=1),
    Settings("source-prior", queries=200, skew=2.0, sources=8, within=True),
    Settings("random", tau=0.0),
]


def some_settings(seed, count):
    """Settings at every place of every control."""
    dice = random.Random(seed)
    for _ in range(count):
        made = {"predictor": dice.choice(list(PREDICTORS)), "within": dice.random() < 0.4}
        for name, _, low, high, step in SLIDERS:
            value = round(low + dice.randint(0, round((high - low) / step)) * step, 2)
            made[name] = type(getattr(Settings(), name))(value)
        if dice.random() < 0.3:
            made |= {"labels": dice.randint(1, 4), "queries": dice.randint(1, 12)}
        yield Settings(**made)


@pytest.fixture(scope="module", name="path")
def _path(tmp_path_factory):
    path = tmp_path_factory.mktemp("playground") / "playground.html"
    path.write_bytes(page())
    return path


@pytest.fixture(scope="module", name="computed")
def _computed(browser, path):
    """What the page's script makes of settings, all of a list at once."""
    opened = browser.new_page()
    opened.goto(path.as_uri())
    in_one_call = "(all) => JSON.stringify(JSON.parse(all).map((one) => playground.compute(one)))"
    yield lambda settings: json.loads(opened.evaluate(in_one_call, json.dumps([asdict(one) for one in settings])))
    opened.close()


def test_the_page_and_the_gate_say_the_same_of_the_cases_and_of_random_settings(computed):
    settings = [*(case for _, case in CASES), *some_settings(2026, 80), *CORNERS]
    seen, decided = set(), 0
    for given, shown in zip(settings, computed(settings), strict=True):
        gold, sources, lists = bench(given)
        made = shown["bench"]
        assert [f"{answer:03}" for answer in made["gold"]] == gold
        assert [f"source {source + 1}" for source in made["sources"]] == sources
        assert [[f"{document:03}" for document in row] for row in made["lists"]] == lists
        found = verdict(given)
        assert math.isclose(shown["real"], found["real_mean"], abs_tol=1e-12)
        near = False
        for letter, null in shown["nulls"].items():
            assert math.isclose(null["mean"], found["null_means"][letter], rel_tol=1e-9, abs_tol=1e-12), (given, letter)
            assert math.isclose(null["delta"], found["deltas"][letter], rel_tol=1e-9, abs_tol=1e-12), (given, letter)
            p = found["p_values"][letter]  # other draws than the page's: five standard errors of the difference
            assert abs(null["p"] - p) <= 5 * math.sqrt(2 * p * (1 - p) / TRIALS) + 2 / TRIALS, (given, letter)
            near |= abs(p - ALPHA) < 0.035
        if not near:
            decided += 1
            assert shown["verdict"] == found["verdict"], given
            assert {letter: null["verdict"] for letter, null in shown["nulls"].items()} == found["verdicts"], given
        seen |= {found["verdict"], given.predictor}
    assert seen == {"pass", "fail", "insufficient", *PREDICTORS}
    assert decided >= len(CASES) + 60


def test_the_cases_are_those_that_their_titles_tell():
    found = [verdict(settings) for _, settings in CASES]
    assert [each["verdict"] for each in found] == ["fail", "fail", "pass", "fail", "pass", "insufficient"]
    assert [letter for letter, each in found[1]["verdicts"].items() if each != "pass"] == ["D"]
    assert found[1]["deltas"]["D"] == pytest.approx(found[3]["deltas"]["D"], abs=1e-9) == pytest.approx(0, abs=1e-9)


def test_the_table_of_cases_shows_what_its_links_show(opened, path):
    shown = opened(path)
    for place, (_, settings) in enumerate(CASES, start=1):
        row = f"#cases ~ .scroll tbody tr:nth-child({place})"
        shown.click(f"{row} a")
        shown.wait_for_url(re.compile(re.escape(settings.address)))
        outcome = shown.text(f"{row} td:last-child")
        shown.wait_for_selector(f"#verdict:text-matches('{outcome}')")
        assert shown.text(f"{row} td:nth-child(2)") in shown.text("#verdict")
        for column, letter in enumerate("ABCD", start=3):
            table = shown.text(f"{row} td:nth-child({column})").rstrip(" ×?")
            assert table == shown.text(f"#row-{letter} td:nth-of-type(3)")
    assert not shown.complaints


def test_a_control_moves_the_verdict_and_the_address_keeps_it(opened, path):
    shown = opened(path)
    shown.focus("#skew")
    shown.press(*["ArrowRight"] * 10)
    shown.wait_for_url(re.compile("skew=1&"))
    assert shown.is_disabled("#skill")
    shown.select_option("#predictor", "engine")
    shown.wait_for_selector("#verdict:text-matches('pass')")
    again = opened(path, beside=shown)
    again.goto(shown.url)
    assert again.text("#row-A") == shown.text("#row-A")
    assert {url.partition("#")[0] for url in again.requests} == {path.as_uri()}
    assert not shown.complaints + again.complaints


def test_an_address_that_makes_no_sense_is_brought_within_the_controls(opened, path):
    shown = opened(path)
    bad = "#predictor=oracle&queries=1e9&labels=-4&skew=x&within=perhaps&<b>=1"
    shown.evaluate("(hash) => { location.hash = hash; }", bad)
    shown.wait_for_selector("#queries-now:text-is('200')")
    assert shown.evaluate("settingsNow()") == asdict(replace(Settings(), queries=200, labels=1))
    assert not shown.complaints


def test_the_command_writes_the_page(tmp_path, capsys):
    path = tmp_path / "new" / "page.html"
    assert called(["grade", "--playground", str(path)]) == 0
    assert called(["grade", "--playground", str(path)]) == 0
    assert path.read_bytes() == page()
    assert capsys.readouterr().out.splitlines() == [str(path)] * 2
    assert not re.search(rb"https?:(?!//www.w3.org/2000/svg)|url\(|src=|fetch\(| style=", page())
