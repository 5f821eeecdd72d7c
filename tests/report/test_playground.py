import json
import math
import random
import re
from dataclasses import asdict, replace

import numpy as np
import pytest

from runner.base.errors import BackendError, InputError
from runner.base.records import Run
from runner.commands.tools import playground
from runner.gate.single_gold import gate as null_gate
from runner.report.playground import CASES, CONTROLS, Choice, Settings, bench, gate, page
from runner.score.mulberry32 import SEEDS, uniforms
from runner.tools.case_study import zoo_lists

pytest_plugins = ["tests.support.browser"]

STEP = 0x6D2B79F5
N_SETTINGS = 200
EXACT = ("real_mean", "null_means", "deltas", "intervals", "p_values", "smallest_p")
SAID = ("verdict", "verdicts", "reasons", "warnings", "n_queries")
SKEWED = CASES[1].settings
ENGINE = Settings(predictor="engine", skew=1.0)
SENTENCES = (
    "does not beat it",
    "less than tau",
    "is more than",
    "no two different gold labels",
    "a perfect engine would beat it by",
    "a perfect engine could not expect",
    "or more would do",
    "no engine could do better",
    "is too near",
    "cannot tell engines apart",
    "one test and not three",
    "does not pass by itself",
)
"""What the gate can say of a bench of the page, all of which is to come up."""

CORNERS = [
    Settings(predictor="engine", skill=1.0, labels=4, queries=20, k=1),  # no engine could do better, and p is too much
    Settings(predictor="engine", queries=1, labels=1),
    Settings(predictor="source", queries=200, skew=2.0, sources=8, k=10, measure="ndcg", within=True),
    Settings(predictor="random", pool=40, k=10, tau=0.0, measure="mrr"),
]
AT = """(letter) => {
  const strip = document.querySelector(`#strip-${letter}`);
  const all = (name, key) => [...strip.querySelectorAll(name)].map((one) => parseFloat(one.getAttribute(key)));
  const line = [...all(".real", "x1"), ...all(".mean", "x1"), ...all("svg", "x")];
  return [...line, ...all(".band", "x1"), ...all(".band", "x2"), ...all(".dot", "cx")];
}"""
"""Where the marks of a null's strip stand, in per cent of the width."""


class Mulberry:
    """The draws that the gate asks of a numpy generator, taken from the page's generator instead."""

    def __init__(self, seed):
        self.seed = seed

    def taken(self, *shape):
        count = math.prod(shape)
        numbers = uniforms(self.seed, count).reshape(shape)
        self.seed = (self.seed + count * STEP) % SEEDS
        return numbers

    def integers(self, high, *, size):
        return (self.taken(*size) * high).astype(np.int64)

    def permuted(self, rows, *, axis):
        """Rows shuffled one after another, each from its last place to its second (Fisher & Yates)."""
        assert axis == 1
        made, (n_rows, length) = rows.copy(), rows.shape
        numbers, every = self.taken(n_rows, length - 1), np.arange(n_rows)
        for turn, last in enumerate(range(length - 1, 0, -1)):
            other = (numbers[:, turn] * (last + 1)).astype(np.int64)
            made[every, last], made[every, other] = made[every, other], made[every, last]
        return made


def some_settings(seed, count):
    """Settings at every place of every control; draws are few for most, so that the test is quick."""
    dice = random.Random(seed)
    controls = [control for group in CONTROLS.values() for control in group]
    for _ in range(count):
        made = {"within": dice.random() < 0.4, "trials": dice.choices([99, 199, 999], [12, 4, 1])[0]}
        for control in controls:
            if isinstance(control, Choice):
                made.setdefault(control.name, of_its_type(control.name, dice.choice(control.options)[0]))
            else:
                steps = dice.randint(0, round((control.high - control.low) / control.step))
                made[control.name] = of_its_type(control.name, round(control.low + steps * control.step, 2))
        if dice.random() < 0.3:
            made |= {"labels": dice.randint(1, 4), "queries": dice.randint(1, 12)}
        yield Settings(**made)


def of_its_type(name, value):
    return type(getattr(Settings(), name))(value)


def gate_with_the_page_s_draws(settings, made):
    """The product's gate over a bench, with the sums over the queries that it drew."""
    seen = []

    def spied(outcome, tau, alpha):
        seen.append(outcome)
        return findings(outcome, tau, alpha)

    findings = null_gate.findings
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np.random, "default_rng", lambda _: Mulberry(2 * settings.seed + 1))
        patch.setattr(null_gate, "findings", spied)
        return gate(settings, made), seen[0].draws


def said(shown, text):
    """Waits until the verdict's line begins with a text."""
    shown.wait_for_selector(f"#verdict:text-matches('^{text}')")


def close(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.fixture(scope="module", name="path")
def _path(tmp_path_factory):
    path = tmp_path_factory.mktemp("playground") / "playground.html"
    path.write_bytes(page())
    return path


@pytest.fixture(scope="module", name="computed")
def _computed(browser, path):
    """What the page's script makes of settings, all of a list at once, in one page for the module."""
    opened = browser.new_page()
    opened.goto(path.as_uri())
    in_one_call = "(all) => JSON.stringify(JSON.parse(all).map((one) => playground.compute(one)))"
    yield lambda settings: json.loads(opened.evaluate(in_one_call, json.dumps([asdict(one) for one in settings])))
    opened.close()


def test_the_page_and_the_gate_say_the_same_of_200_random_settings(computed):
    settings = [*some_settings(2026, N_SETTINGS), *CORNERS]
    verdicts, said_of = set(), set()
    for given, shown in zip(settings, computed(settings), strict=True):
        made = bench(given)
        assert shown["bench"] == asdict(made), given
        found, draws = gate_with_the_page_s_draws(given, made)
        for name in EXACT:
            hold_to(shown[name], found[name], (given, name))
        hold_to(squares(shown["null_sds"]), squares(found["null_sds"]), (given, "variance"))
        assert {name: shown[name] for name in SAID} == {name: found[name] for name in SAID}, given
        assert list(shown["strata"]) == list(found["strata"])
        for stratum, own in found["strata"].items():
            hold_to(shown["strata"][stratum], own, (given, stratum))
        hold_to(shown["draws"], pictures(draws / given.queries), (given, "draws"))
        verdicts |= {(given.predictor, found["verdict"])}
        said_of |= {sentence for sentence in SENTENCES if sentence in str(found["reasons"] + found["warnings"])}
    assert said_of == set(SENTENCES)
    assert {verdict for _, verdict in verdicts} == {"pass", "fail", "insufficient"}
    assert {predictor for predictor, _ in verdicts} == {"constant", "popularity", "source", "random", "engine"}


def hold_to(shown, found, where):
    """Numbers to the last digits, all else as it is."""
    if isinstance(found, dict):
        assert shown.keys() == found.keys(), where
        for name in found:
            hold_to(shown[name], found[name], (*where, name))
    elif isinstance(found, float) and isinstance(shown, float | int):
        assert math.isclose(shown, found, rel_tol=1e-9, abs_tol=1e-12), (*where, shown, found)
    elif isinstance(found, list) and isinstance(shown, list):
        for place, (one, other) in enumerate(zip(shown, found, strict=True)):
            hold_to(one, other, (*where, place))
    else:
        assert shown == found, where


def squares(by_null):
    """Variances, which are 0 but for rounding where their roots are not."""
    return {letter: value**2 for letter, value in by_null.items()}


def pictures(means):
    """What the page draws of each null's draws: the ends of the middle 95 % of them, and 40 of them."""
    shares = [0.025, 0.975, *((place + 0.5) / 40 for place in range(40))]
    ends = {
        letter: np.quantile(drawn, shares, method="inverted_cdf").tolist()
        for letter, drawn in zip("ABCD", means, strict=True)
    }
    return {letter: {"low": low, "high": high, "dots": dots} for letter, (low, high, *dots) in ends.items()}


def test_verdicts_are_those_of_the_tool_s_own_draws_unless_it_warns_that_they_hang_on_the_seed(computed):
    settings = [replace(each, trials=999) for each in some_settings(7, 40)]
    decided = 0
    for given, shown in zip(settings, computed(settings), strict=True):
        found = gate(given, bench(given))
        assert shown["deltas"] == close(found["deltas"])
        if not any("another seed" in text for text in found["warnings"] + shown["warnings"]):
            decided += 1
            assert shown["verdict"] == found["verdict"], given
    assert decided >= 35


def test_the_same_settings_give_the_same_and_another_seed_moves_only_what_is_drawn(computed):
    one, again, other = computed([SKEWED, SKEWED, replace(SKEWED, seed=SKEWED.seed + 1)])
    assert one == again
    assert one["p_values"] != other["p_values"]
    assert all(one[name] == other[name] for name in ("bench", "null_means", "deltas", "intervals"))


@pytest.mark.parametrize(
    ("predictor", "broken"),
    [
        ("constant", zoo_lists.one_document),
        ("popularity", zoo_lists.most_popular),
        ("source", zoo_lists.source_prior),
    ],
)
def test_predictors_return_what_their_namesakes_in_the_zoo_return(predictor, broken):
    settings = Settings(predictor=predictor, skew=0.8, k=zoo_lists.DEPTH, sources=3)
    made = bench(settings)
    queries = {str(query): "" for query in range(settings.queries)}
    material = zoo_lists.Material(
        queries,
        {f"{document:04}": "" for document in range(settings.pool)},
        {query: {f"{answer:04}": 1} for query, answer in zip(queries, made.gold, strict=True)},
        {query: f"source {source}" for query, source in zip(queries, made.sources, strict=True)},
        1,
        Run("", {}),
        None,
        0,
    )
    assert [[f"{document:04}" for document in row] for row in made.lists] == broken(material)


def test_an_engine_finds_as_many_answers_as_its_skill_says_and_half_of_them_first():
    made = bench(Settings(predictor="engine", skill=0.6, queries=200, pool=1000))
    places = [row.index(answer) for answer, row in zip(made.gold, made.lists, strict=True) if answer in row]
    assert 0.5 <= len(places) / 200 <= 0.7
    assert 0.38 <= places.count(0) / len(places) <= 0.62
    assert all(len(set(row)) == 5 for row in made.lists)


def test_more_skill_only_adds_answers():
    weak, strong = (bench(replace(ENGINE, skill=skill)) for skill in (0.2, 0.7))
    found = [
        {query for query, (answer, row) in enumerate(zip(one.gold, one.lists, strict=True)) if answer in row}
        for one in (weak, strong)
    ]
    by_luck = {query for query in found[0] if query not in found[1]}
    assert len(by_luck) <= 3
    assert len(found[1]) > len(found[0])


def test_numbers_are_written_as_python_writes_them(opened, path):
    shown = opened(path)
    dice = random.Random(1)
    ties = [n / 2**power for power in range(1, 16) for n in (1, 3, 5, 7)]
    values = [0.0, 1.0, 1e-5, 9.9996e-5, 123456.7, *ties, *(dice.random() ** 6 for _ in range(300))]
    written = shown.evaluate("(all) => all.map((x) => [playground.general(x, 4), playground.general(x, 6)])", values)
    assert written == [[f"{value:.4g}", f"{value:g}"] for value in values]
    rounded = shown.evaluate("(all) => all.map((x) => playground.roundedTo(x, 6))", values)
    assert rounded == [round(value, 6) for value in values]


def test_the_table_of_cases_shows_what_their_links_show(opened, path):
    shown = opened(path)
    links = shown.eval_on_selector_all(".steps a", "all => all.map((link) => link.hash)")
    table = shown.eval_on_selector_all(
        "#cases ~ .scroll tbody tr", "all => all.map((row) => [...row.cells].slice(1).map((cell) => cell.textContent))"
    )
    assert links == [case.settings.address for case in CASES]
    assert [row[-1] for row in table] == ["fail", "fail", "pass", "fail", "pass", "insufficient"]
    for place, row in enumerate(table):
        shown.click(f".steps li:nth-child({place + 1}) a")
        shown.wait_for_selector(f".steps li:nth-child({place + 1}) a[aria-current]")
        live = [shown.text(f"#row-{letter} td:nth-child(4)") for letter in "ABCD"]
        assert [text.removesuffix(" ×").removesuffix(" ?") for text in row[1:-1]] == live
        assert (row[0], row[-1]) == (shown.text("#real"), shown.text("#verdict").partition(":")[0].lower())
    assert not shown.complaints


def test_a_constant_answer_is_caught_by_the_null_that_knows_how_common_labels_are():
    even, skewed, pooled, within = (gate(case.settings, bench(case.settings)) for case in CASES[:4])
    assert even["verdict"] == skewed["verdict"] == within["verdict"] == "fail"
    assert [letter for letter, verdict in skewed["verdicts"].items() if verdict != "pass"] == ["D"]
    assert skewed["deltas"]["D"] == close(0)
    assert (pooled["verdict"], within["deltas"]["D"]) == ("pass", close(0))


def test_an_arrow_key_on_a_slider_moves_figures_and_verdict(opened, path):
    shown = opened(path, viewport={"width": 1100, "height": 800})
    assert shown.text("#verdict") == "Fail: nulls A, B, C, D not beaten"
    shown.focus("#skew")
    shown.press(*["ArrowRight"] * 10)
    said(shown, "Fail: null D not beaten")
    assert shown.text("#skew-now") == "1"
    assert shown.is_disabled("#skill")
    shown.select_option("#predictor", "engine")
    said(shown, "Pass: all four nulls are beaten")
    assert shown.is_enabled("#skill")
    shown.focus("#tau")
    shown.press("End")
    said(shown, "Fail")
    assert "less than tau 0.5" in shown.text("#reasons")


def test_the_address_holds_the_settings_and_reset_and_back_undo(opened, path):
    shown = opened(path)
    shown.click("#next")  # step 2, an entry of the history of its own
    shown.wait_for_selector(".steps li:nth-child(2) a[aria-current]")
    shown.check("#within")
    shown.wait_for_url(re.compile("within=1"))
    row = shown.text("#row-A")
    again = opened(path, beside=shown)
    again.goto(shown.url)
    assert again.is_checked("#within")
    assert again.input_value("#skew") == "1"
    assert again.text("#row-A") == row
    again.click("#reset")
    again.wait_for_url(re.compile("#predictor=constant$"))
    assert again.evaluate("playground.addressOf(settingsNow())") == Settings().address
    shown.click(".steps li:nth-child(5) a")
    said(shown, "Pass")
    shown.go_back()
    said(shown, "Fail")
    assert shown.is_checked("#within")
    assert not shown.complaints + again.complaints


def test_an_address_that_makes_no_sense_is_brought_within_the_sliders(opened, path):
    shown = opened(path)
    bad = "#predictor=oracle&queries=1e9&labels=-4&skew=x&k=2.4&alpha=0.7&within=perhaps&seed=Infinity&<b>=1"
    shown.evaluate("(hash) => { location.hash = hash; }", bad)
    shown.wait_for_selector("#queries-now:text-is('200')")
    given = shown.evaluate("settingsNow()")
    expected = {**asdict(Settings()), "queries": 200, "labels": 1, "k": 2}
    assert given == expected
    assert "no two different gold labels" in shown.text("#reasons")
    assert not shown.complaints


def test_strips_stand_where_the_figures_say(opened, path):
    shown = opened(path, viewport={"width": 1100, "height": 800})
    shown.click(".steps li:nth-child(5) a")
    shown.wait_for_selector(".steps li:nth-child(5) a[aria-current]")
    found = shown.evaluate("playground.compute(settingsNow())")
    ticks = shown.eval_on_selector_all(
        "#strips .tick", "all => all.map((tick) => [parseFloat(tick.getAttribute('x')), Number(tick.textContent)])"
    )
    (start, low), (end, high) = ticks[0], ticks[-1]
    for letter in "ABCD":
        at = shown.evaluate(AT, letter)
        values = [low + (place - start) / (end - start) * (high - low) for place in at]
        drawn, mean = found["draws"][letter], found["null_means"][letter]
        expected = [found["real_mean"], mean, mean + 0.05, drawn["low"], drawn["high"], *drawn["dots"]]
        assert values == pytest.approx(expected, abs=1e-4)


def test_within_sources_every_source_has_a_row(opened, path):
    shown = opened(path)
    assert not shown.is_visible("#by-source")
    shown.click(".steps li:nth-child(4) a")
    shown.wait_for_selector("#by-source", state="visible")
    rows = shown.eval_on_selector_all("#by-source tbody tr", "all => all.map((row) => row.cells[0].textContent)")
    assert rows == [f"source {number}" for number in range(1, 6)]
    assert "stratum 'source 1' does not pass by itself" in shown.text("#reasons")


def test_a_script_that_is_put_in_does_not_run_and_nothing_is_loaded(opened, path, tmp_path):
    put_in = tmp_path / "injected.html"
    injected = b"<script>window.hit = 1</script><img src=https://example.org/x onerror='window.hit = 2'>"
    put_in.write_bytes(path.read_bytes().replace(b"<main>", b"<main>" + injected, 1))
    shown = opened(put_in)
    said(shown, "Fail")
    assert shown.evaluate("window.hit") is None
    assert sum("Content Security Policy" in complaint for complaint in shown.complaints) >= 2
    with pytest.raises(Exception, match="TrustedHTML"):
        shown.evaluate("() => { document.body.innerHTML = '<b>x</b>'; }")
    clean = opened(path)
    clean.click("#again")
    clean.wait_for_url(re.compile("seed=2"))
    assert {url.partition("#")[0] for url in clean.requests} == {path.as_uri()}
    assert not clean.complaints


def test_without_script_the_cases_are_there_and_the_desk_is_not(opened, path):
    shown = opened(path, java_script_enabled=False)
    assert "Without JavaScript nothing moves here" in shown.text("noscript")
    assert not shown.is_visible("#desk")
    assert shown.text("#cases ~ .scroll tbody").count("fail") == 3


def test_a_narrow_screen_needs_no_sideways_scrolling_and_controls_are_large_enough(opened, path):
    shown = opened(path, viewport={"width": 360, "height": 740})
    for place in (2, 4, 6):
        shown.click(f".steps li:nth-child({place}) a")
        shown.wait_for_selector(f".steps li:nth-child({place}) a[aria-current]")
        assert shown.evaluate("document.documentElement.scrollWidth") <= 360
    shown.click("summary")
    heights = shown.eval_on_selector_all(
        "#controls input[type=range], #controls select, #controls button, #controls label:has(input), .steps a, #next",
        "all => all.map((one) => one.getBoundingClientRect().height)",
    )
    assert min(heights) >= 24


def test_on_paper_the_strips_share_their_axis_and_what_is_to_be_pressed_is_left_out(opened, path):
    shown = opened(path, viewport={"width": 1040, "height": 700})
    shown.emulate_media(media="print")
    edges = shown.eval_on_selector_all(
        ".strip, .axis",
        "all => all.map((one) => one.getBoundingClientRect()).map((box) => `${box.left} ${box.right}`)",
    )
    assert len(edges) == 5
    assert len(set(edges)) == 1
    assert not any(shown.is_visible(selector) for selector in ("#next", "#again", "#reset"))
    assert shown.is_visible("#measure")


def test_every_control_is_named_and_reached_by_the_tab_key(opened, path):
    shown = opened(path)
    shown.select_option("#predictor", "engine")
    shown.wait_for_selector("#skill:enabled")
    shown.click("summary")
    names = [control.name for group in CONTROLS.values() for control in group] + ["within"]
    unnamed = shown.eval_on_selector_all(
        "#controls [name]", "all => all.filter((one) => !one.labels.length).map((one) => one.name)"
    )
    assert not unnamed
    shown.focus(".steps li:last-child a")
    reached = []
    for _ in range(len(names) + 2):
        shown.press("Tab")
        reached.append(shown.evaluate("document.activeElement.name"))
    assert {name for name in reached if name} == set(names)


def test_the_verdict_is_spoken_once_and_never_by_colour_alone(opened, path):
    shown = opened(path)
    shown.evaluate(
        """() => {
          window.spoken = [];
          const verdict = at("verdict");
          new MutationObserver(() => spoken.push(verdict.textContent)).observe(verdict, { childList: true });
        }"""
    )
    shown.click("#again")
    shown.wait_for_url(re.compile("seed=2"))
    shown.click(".steps li:nth-child(2) a")
    said(shown, "Fail: null D not beaten")
    assert shown.evaluate("spoken") == ["Fail: null D not beaten"]
    assert shown.text("#sign") == "×"
    assert shown.get_attribute("#verdict", "role") == "status"
    assert shown.text("#row-D td:last-child") == "× fail"


def test_the_command_writes_the_page_and_writes_over_nothing_else(tmp_path, capsys):
    path = tmp_path / "new" / "page.html"
    assert playground(["--output", str(path)]) == 0
    assert playground(["--output", str(path)]) == 0
    assert path.read_bytes() == page()
    assert capsys.readouterr().out.splitlines() == [str(path)] * 2
    other = tmp_path / "other.html"
    other.write_text("mine", encoding="utf-8")
    (tmp_path / "v3").mkdir()
    (tmp_path / "v3" / "decision.json").write_text("{}", encoding="utf-8")
    for taken, why in (
        (other, "is no page of this kind"),
        (tmp_path / "page.txt", "ends in .html"),
        (tmp_path, "ends in"),
        (tmp_path / "v3" / "pg.html", "only a run writes there"),
    ):
        with pytest.raises(InputError, match=why):
            playground(["--output", str(taken)])
    assert other.read_text(encoding="utf-8") == "mine"


def test_a_disk_that_cannot_be_written_is_an_error_with_a_way_out(tmp_path, monkeypatch):
    def refuse(path, data):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("runner.report.comparison.file.write_atomic", refuse)
    with pytest.raises(BackendError, match="cannot be written"):
        playground(["--output", str(tmp_path / "page.html")])


def test_without_a_name_the_page_goes_to_the_folder_for_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("runner.commands.tools.WORKPLACE", tmp_path)
    assert playground([]) == 0
    assert capsys.readouterr().out == f"{tmp_path / '.work' / 'playground.html'}\n"
    assert (tmp_path / ".work" / "playground.html").read_bytes() == page()


def test_the_page_is_small_and_names_no_address():
    made = page()
    assert len(made) < 100_000
    assert not re.search(rb"https?:(?!//www.w3.org/2000/svg)|url\(|src=|fetch\(| style=", made)
