import base64
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from lxml import html as markup
from pydantic import ValidationError

from runner.base.errors import InputError
from runner.base.figures import places, signed
from runner.base.schema import checked
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.results import Results
from runner.report.page_frame import LONGEST_TEXT, TEMPLATES
from runner.report.results_page import read_chunks
from runner.report.summary import ranking_table
from tests.support import example_panel
from tests.support.full_results import NAMES, backend, full_receipt, full_results, page
from tests.support.outline import Outline, section, words


def synthetic_results(**changes: Any) -> dict[str, Any]:
    """A results.json as JSON, to be changed where a test wants it to be odd."""
    return full_results(**changes).model_dump()


def synthetic_receipt() -> dict[str, Any]:
    return full_receipt(full_results()).model_dump()


def rendered(receipt: dict[str, Any] | None = None, **changes: Any) -> str:
    return page_of(synthetic_results(**changes), receipt)


def page_of(results: dict[str, Any], receipt: dict[str, Any] | None = None) -> str:
    measured = None if receipt is None else Receipt.model_validate(receipt)
    return page(Results.model_validate(results), measured).decode()


def column(html: str, caption: str, row: int) -> list[str]:
    """The texts of one body row of the table whose caption has that id."""
    table = html.split(f'id="{caption}"')[1].split("</table>")[0]
    line = re.findall(r"<tr[^>]*>(.*?)</tr>", table.split("<tbody>", 1)[1], re.DOTALL)[row]
    return [words(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)]


def test_the_same_inputs_give_the_same_bytes_in_any_process():
    results, receipt = synthetic_results(), Receipt.model_validate(synthetic_receipt())
    first = page(Results.model_validate(results), receipt)
    program = (
        "import sys; from tests.report.test_render import *; "
        "sys.stdout.buffer.write(page(Results.model_validate(synthetic_results()), "
        "Receipt.model_validate(synthetic_receipt())))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "17", "LC_ALL": "C"}
    again = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, env=environment, cwd=TEMPLATES.parent
    )
    assert again.stdout == first


PARTS = [(), ("judging", "seconds", 0, "kappa"), ("previous", "queries"), ("cells", 0, "gate", "nulls", 0)]


@pytest.mark.parametrize("place", PARTS, ids=lambda place: ".".join(map(str, place)) or "the whole")
def test_a_result_with_a_field_too_many_or_too_few_is_refused_wherever_it_is(place: tuple[str | int, ...]):
    results = synthetic_results()
    part: Any = results
    for step in place:
        part = part[step]
    missing = next(iter(part))
    value = part.pop(missing)
    with pytest.raises(ValidationError, match="Field required"):
        Results.model_validate(results)
    part |= {missing: value, "unheard_of": 1}
    with pytest.raises(ValidationError, match="unheard_of"):
        Results.model_validate(results)


def test_the_page_loads_nothing_and_permits_only_its_own_style_and_its_own_script():
    html = rendered(synthetic_receipt())
    elements = Outline(html).elements
    assert not {tag for tag, _ in elements} & {"img", "link", "iframe", "object", "embed", "base"}
    for tag, attributes in elements:
        outside = {"action", "formaction", "src", "srcset", "style"}
        assert not [name for name in attributes if name.startswith("on") or name in outside], tag
        href = attributes.get("href") or "#"
        assert href.startswith(("#", "https://www.example.gov/"))
    assert ("meta", {"name": "referrer", "content": "no-referrer"}) in elements
    (style,), (script,) = (re.findall(f"<{tag}>(.*?)</{tag}>", html, re.DOTALL) for tag in ("style", "script"))
    style_sha256, script_sha256 = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style, script)
    )
    assert all(a.get("type") == "application/json" for tag, a in elements[20:] if tag == "script")
    policies = [
        a["content"] for tag, a in elements if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == [
        f"default-src 'none'; script-src 'sha256-{script_sha256}'; style-src 'sha256-{style_sha256}'; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    ]
    assert not re.search("url\\((?!#)", style)
    assert "@import" not in style


@pytest.mark.parametrize("changes", [{}, {"unjudged": 37}, {"kind": "rehearsal"}, {"kind": "exploration"}])
def test_structure_is_one_that_a_screen_reader_can_follow(changes: dict[str, Any]):
    elements = Outline(rendered(synthetic_receipt(), **changes)).elements
    tags = Counter(tag for tag, _ in elements)
    assert elements[0] == ("html", {"lang": "en"})
    assert tags["h1"] == tags["main"] == 1
    levels = [int(tag[1]) for tag, _ in elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert tags["table"] == tags["caption"]
    assert all("scope" in attributes for tag, attributes in elements if tag == "th")
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = {a[key] for _, a in elements for key in ("aria-labelledby",) if key in a}
    linked = {str(a["href"])[1:] for tag, a in elements if tag == "a" and str(a["href"]).startswith("#")}
    assert named | linked <= set(ids)
    scrolling = sum(a.get("class") == "scroll" and a.get("tabindex") == "0" for _, a in elements)
    assert tags["table"] == scrolling + 2  # the table of results and that of queries scroll with the page


def changed(results: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The results with these values in place, by dotted path; a mapping changes the fields that it names."""
    for path, value in changes.items():
        *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
        part: Any = results
        for step in steps:
            part = part[step]
        part[last] = part[last] | value if isinstance(value, dict) and part[last] else value
    return results


BLANK = {"value": None, "low": None, "high": None}
ALIKE = {"alike": {"value": 1.0, "low": 0.9513, "high": 1.0}, "kappa": {"value": 1.0, "low": None, "high": None}}
UNKNOWN = {"no_candidate": None, "cells": {}, "draws": 0, "unknown": "11 do not say"}
MOVED = {"mean": 0.0123, "low": 0.0004, "high": 0.0242, "wins": 3, "ties": 27, "losses": 0}
BASE, CELLS = full_results().plan.baseline, len(full_results().cells)
CHALLENGER = full_results().plan.cells[1]
UNDECIDED = {"chosen": "", "tier": "", "cells": {}}
ONCE = example_panel.panel_of_one().model_dump()
STRATA = {f"title {number}": 1 for number in range(13)}
CORPUS = {"n_chars": 30_000, "strata": {"a": 8, "b": 2, "c": 2}}


@pytest.mark.parametrize(
    ("kinds", "texts"),
    [
        ({"kind": "rehearsal"}, "REHEARSAL: us_code version 1|never a decision|per-source-eval run us_code --rehearse"),
        ({}, "61 times in 100|per-source-eval verify us_code --deep|There is no receipt"),
        ({"kind": "exploration", "tier": "baseline kept"}, "EXPLORATION: us_code version 1|nothing is decided"),
        ({"unjudged": 407}, "PROVISIONAL: us_code|407 of 4,587 pairs|nDCG@10 bounds"),
    ],
)
def test_the_page_says_of_what_kind_it_is(kinds: dict[str, Any], texts: str):
    said = words(rendered(**kinds))
    assert [text for text in texts.split("|") if text not in said] == []


@pytest.mark.parametrize(
    ("changes", "where", "texts"),
    [
        ({"plan": {"rule": {"min_gain": 0.001, "max_recall_loss": 0.5}}}, "", "The rule is not the specification's"),
        ({"noise_floor": None}, "gate", "Not measured: there is no second run"),
        (
            {"noise_floor": {"difference": MOVED, "max_change": 0.1416}},
            "gate",
            "nDCG@10 changed by +0.012 [0.000, +0.024] on average; 3 of 30 queries changed, the largest by 0.14",
        ),
        ({"judging/seconds/0/kappa": BLANK}, "judges", "Weighted kappa not defined"),
        (
            {"judging/seconds/0": ALIKE},
            "judges",
            "relevant to either 1.00 [0.95, 1.00]|Weighted kappa 1.00|one-sided bound is Clopper and Pearson",
        ),
        ({f"judging/seconds/0/by_cell/{CHALLENGER}": {"p_for_baseline": None}}, "judges", "0.012 too few to tell"),
        ({"judging/noise": UNKNOWN}, "judges", "Not drawn: 11 do not say."),
        (
            {"judging": ONCE},
            "judges",
            "No pair was read by a second judge|labels double us_code chooses a share|No judge was given a pair twice",
        ),
        ({"judging": None}, "corpus", "reader-b 31"),
        ({"spans": example_panel.NO_SPANS.model_dump()}, "passages", "No passage was marked, so span"),
        ({"spans": None}, "passages", "No cell has a reading list, so span scores are undefined"),
        ({"previous": UNDECIDED}, "previous", "Version 1 was never decided, so"),
        (
            {"previous": UNDECIDED | {"chosen": BASE, "tier": "by policy", "results_sha256": None}},
            "previous",
            f"Version 1 was decided by policy, without figures: {BASE}.",
        ),
        ({"corpus": CORPUS}, "corpus", "A document has 2,500 characters on average.|a 8 67 %"),
        ({"corpus": {"strata": STRATA}}, "corpus", "Sampled documents by stratum (13 strata)"),
        (
            {"cells/0/single_gold/recall@10": {"verdict": "fail"}},
            "gate",
            f"{CELLS - 1} of {CELLS} cells pass by recall",
        ),
    ],
)
def test_a_section_says_what_its_results_are(changes: dict[str, Any], where: str, texts: str):
    html = page_of(changed(synthetic_results(), changes))
    said = words(section(html, where) if where else html)
    assert [text for text in texts.split("|") if text not in said] == []


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({}, "REHEARSAL|provisional|nDCG@10 bounds|is taken over|one-sided bound|judges-caption|--check"),
        ({"judging": ONCE}, "kappa-|favour-1-|drift-|noise-|under-"),
        ({"judging/noise": UNKNOWN}, "noise-"),
        ({"spans": None}, "span-recall-"),
        ({"previous": UNDECIDED}, "previous-"),
        ({"previous": None}, 'id="previous"|href="#previous"'),
        ({"corpus": CORPUS}, "documents by stratum ("),
    ],
)
def test_the_page_does_not_say_what_its_results_are_not(changes: dict[str, Any], texts: str):
    html = page_of(changed(synthetic_results(), changes))
    named = [f'"{text}caption"' if text.endswith("-") else text for text in texts.split("|")]
    assert [text for text in named if text in html] == []


def test_without_possible_verdicts_or_kinds_that_is_said():
    results = synthetic_results()
    for row in results["cells"]:
        row["single_gold"] = {}
    results["queries"] = [query | {"kind": "topic", "origin": "person"} for query in results["queries"]]
    html = page_of(results)
    assert "Not measured: no query has a relevant document" in words(html)
    assert "nothing to tell apart" in words(section(html, "slices"))


def test_a_public_collection_has_no_judges_passages_or_kinds():
    html = page_of(published())
    for name in ("judges", "passages", "slices", "previous"):
        assert f'id="{name}"' not in html
        assert f'href="#{name}"' not in html


def published(**changes: Any) -> dict[str, Any]:
    """The same cells over published judgments: nothing is decided, nobody judged."""
    results = synthetic_results(kind="external", tier="compared", **changes)
    counts = dict.fromkeys(("empty_documents", "queries_unjudged", "missing_documents"), 0)
    digests = dict.fromkeys(("corpus_sha256", "queries_sha256", "qrels_sha256"), results["digests"]["queries.yaml"])
    results["collection"] = {"name": "scifact", "split": "test"} | counts | digests
    for row in results["cells"]:
        row |= {"meets_criterion_5": False, "short_of": []}
        row["role"] = "baseline" if row["test"] is None else "compared"
    return results | {"judging": None, "sources": None, "spans": None, "previous": None}


def test_a_near_copy_says_the_most_that_it_loses_and_against_which_cell():
    found = synthetic_results()
    row, whole = found["cells"][1], next(each for each in found["cells"] if each["test"] is None)
    row |= {
        "cell": whole["cell"].replace(" x ", "@int8 x "),
        "loss": 0.00301,
        "expected": None,
        "meets_criterion_5": False,
    }
    row["scores"]["ndcg@10"]["mean"] = whole["scores"]["ndcg@10"]["mean"] - 0.0012
    row["test"] |= {"p_gain": None, "bar": None, "simultaneous": None, "p_adjusted": None}
    html = page_of(found)
    assert f"loses at most 0.004 against {whole['cell']} (0.001 here)" in words(html)
    assert row["cell"] not in html.split('id="choices-caption"')[1].split("</table>")[0]
    assert "loses <= 0.004" in ranking_table(Results.model_validate(found), 200)


@pytest.mark.parametrize("kind", ["production", "exploration", "external"])
def test_near_copies_alone_make_a_page_that_marks_no_cell(kind):
    names = NAMES[:2]
    found = published(names=names) if kind == "external" else synthetic_results(names=names, kind=kind)
    row, whole = (next(row for row in found["cells"] if bool(row["test"]) == is_copy) for is_copy in (True, False))
    copy = whole["cell"].replace(" x ", "@int8 x ")
    row |= {"cell": copy, "loss": 0.00301, "expected": None, "meets_criterion_5": False}
    found["outcome"]["recommended"] = found["plan"]["baseline"]
    document = markup.fromstring(page_of(found))
    rows = document.xpath("//table[contains(@class, 'plain')]/tbody/tr")
    assert [each.get("class") for each in rows if each.get("data-cell") == row["cell"]] == [None]
    assert not document.xpath("//li[contains(@class, 'win')]")


def test_a_cell_that_returns_the_lists_of_another_is_no_hypothesis_of_its_own():
    found = synthetic_results()
    row = found["cells"][1]
    row |= {"same_as": "a x b", "expected": None, "meets_criterion_5": False}
    row["test"] |= {"p_gain": None, "bar": None}
    html = page_of(found)
    assert column(html, "tests-caption", 1)[4] == "same lists as a x b"
    terminal = ranking_table(Results.model_validate(found), 200)
    assert f"{row['cell']}: same lists as a x b" in terminal.splitlines()


def test_an_exploration_is_made_again_by_its_own_cells_beside_the_baseline_that_it_had():
    exploration = words(rendered(kind="exploration"))
    assert "explore us_code" in exploration
    assert "'mxbai-large-v1 x fixed_token_512_50' \\" in exploration
    assert "'arctic-l-v2.0 x fixed_token_512_50'" not in exploration
    assert "--rehearse" not in exploration
    of_rehearsal = page_of(synthetic_results(kind="exploration", names=NAMES[:3]))
    assert "explore us_code --rehearse \\" in words(of_rehearsal)


def cut(share: float) -> dict[str, Any]:
    return {"tokens": 10_000, "chunks_cut": 7, "lost": round(10_000 * share), "share": share}


@pytest.mark.parametrize(
    ("share", "said"),
    [
        (0.09, "loses most: 9 % of the tokens not read."),
        (0.01, "No encoder cut much."),
        (0, "No encoder cut anything."),
    ],
)
def test_cells_that_read_the_same_chunks_share_a_row_and_the_headline_names_the_greatest_loss(share, said):
    results = synthetic_results(names=NAMES[:9], source="demo")
    for row in results["cells"]:
        if row["provenance"]["truncation"]:
            row["provenance"]["truncation"] = cut(share)
    html = page_of(results)
    read = read_chunks(Results.model_validate(results))
    assert len(read) < sum(row["provenance"]["encoder"] is not None for row in results["cells"])
    assert [column(html, "truncation-caption", row)[0] for row in range(len(read))] == list(read)
    assert said in words(html)


SPEND = {
    "estimate_usd": 0.61,
    "embedding_usd": 0.48,
    "weights_usd": 0.002,
    "judging_usd": 1.25,
    "gpu": "L4",
    "gpu_seconds": 2041.3,
    "price_per_second": 0.000222,
    "price_source": "list price, second-hand, 2026-06-27",
    "sessions": 4,
    "max_usd": 5.0,
}


def test_what_was_spent_stands_beside_the_estimate_and_the_ceiling_with_weights_apart():
    html = rendered(synthetic_receipt() | {"spend": SPEND})
    assert "Cost 1.73 US dollars by list price" in words(html)
    rows = [column(html, "spend-caption", row) for row in range(5)]
    assert [row[1] for row in rows] == ["0.61", "0.48", "< 0.01", "1.25", "5.00"]
    assert "2,041 seconds of L4 in 4 sessions, 0.000222 a second (list price, second-hand, 2026-06-27)" in rows[1][0]
    assert "in 1 session," in words(rendered(synthetic_receipt() | {"spend": SPEND | {"sessions": 1}}))


MODAL = backend(
    "modal",
    {"device": "NVIDIA L4", "dtype": "float16", "torch": "2.13.0+cu126", "weights_sha256": "c0ffee" * 10, "cuda": "1"},
    gpu="L4",
    device=None,
    dtype="float16",
)
SERVED = backend(
    "http",
    {"device": "gpu-7.example", "model": "all-mpnet", "revision": "unverified"},
    api="tei",
    url="http://gpu-7.example:8080/embed",
    revision="unverified",
    versions={},
    device=None,
    dtype=None,
)


def test_every_embedded_cell_says_backend_device_number_format_libraries_and_revision():
    receipt = synthetic_receipt()
    html = rendered(receipt | {"backends": {"a x b": MODAL, "c x d": SERVED}})
    remote = ["Modal", "NVIDIA L4", "float16", "sentence-transformers 6.2.0, torch 2.13.0+cu126"]
    checked_weights = "as catalogued, weights c0ffeec0ffee"
    assert column(html, "backends-caption", 0) == ["a x b", *remote, checked_weights, "cuda: 1"]
    address = "HTTP, tei, http://gpu-7.example:8080/embed"
    unproven = "unverified: the server does not prove which revision it serves"
    served = [address, "gpu-7.example", "not said", "not said", unproven, "model: all-mpnet"]
    assert column(html, "backends-caption", 1) == ["c x d", *served]


def test_a_revision_that_a_server_states_is_given_as_its_word_and_an_unproven_one_is_a_limit_of_the_result():
    stated = SERVED | {"served": {"revision": "unverified", "model_sha": "ed" * 20, "model_dtype": "float16"}}
    html = rendered(synthetic_receipt() | {"backends": {"a x b": stated, "c x d": SERVED}})
    format_and_revision = [column(html, "backends-caption", 0)[place] for place in (3, 5)]
    assert format_and_revision == ["float16", "edededededed, as the server says"]
    limits = words(section(html, "limits"))
    assert "A server over HTTP embedded some cells" in limits
    assert limits.endswith("c x d.")
    assert "over HTTP" not in words(rendered(synthetic_receipt()))


def test_cells_of_several_places_are_named_by_place_and_so_is_a_noise_floor_between_two():
    results = synthetic_results()
    cells = results["plan"]["cells"]
    receipt = synthetic_receipt()
    assert "Not all cells were embedded in one place" not in words(page_of(results, receipt))
    receipt["backends"][cells[1]] = MODAL
    said = words(page_of(results, receipt))
    assert "Not all cells were embedded in one place" in said
    assert f"on Modal (NVIDIA L4, float16): {cells[1]}" in said
    assert re.search(rf"locally \(cpu, float32\): .*{re.escape(cells[0])}.*, the baseline once more", said)
    assert "noise floor, since" not in said
    another = backend("modal", {"device": "NVIDIA A10"}, dtype="float16")
    receipt["backends"]["aa"] = another
    said = words(page_of(results, receipt))
    assert "on Modal (NVIDIA A10, float16): the baseline once more (A/A)" in said
    assert "and so does the noise floor, since the baseline and its repetition were embedded in two of them" in said


def test_a_receipt_of_another_schema_is_refused_by_its_number():
    with pytest.raises(InputError, match="is of schema version 2, and this release reads 1"):
        checked(Receipt, synthetic_receipt() | {"schema_version": 2}, "receipt.json")


HOSTILE = (
    '"><script>alert(1)</script>',
    "</style></title><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "\u202egnp.exe\u2066 \u05e9\u05dc\u05d5\u05dd",
    "nul \x00 bell \x07 escape \x1b[31m",
    "hidden \u200b\u00ad\ufeff\U000e0041 marks",
    "javascript:alert(1)",
    "' onmouseover='alert(1)",
)


@pytest.mark.parametrize("text", [*HOSTILE[:4], *(pytest.param(text, marks=pytest.mark.slow) for text in HOSTILE[4:])])
def test_hostile_text_is_inert_wherever_it_comes_from(text: str):
    results, receipt = hostile_results(text), synthetic_receipt()
    receipt |= {"platform": text, "libraries": {text: text}, "seconds": {text: 1.0}, "cells": {text: {text: 2.0}}}
    hostile = backend("http", {"device": text, text: text}, api=text, url=text, dtype=text, versions={text: text})
    receipt |= {"backends": {text: hostile, "aa": hostile | {"served": {}}}}
    receipt["spend"] = SPEND | {"gpu": text, "price_source": text}
    html = page_of(results, receipt)
    plain = Outline(page_of(synthetic_results(), synthetic_receipt() | {"backends": {"x": MODAL, "y": SERVED}}))
    assert {tag for tag, _ in Outline(html).elements} <= {tag for tag, _ in plain.elements}
    names = {name for _, attributes in Outline(html).elements for name in attributes}
    assert names <= {name for _, attributes in plain.elements for name in attributes}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", html)
    assert "49" not in words(html.split('class="lead"')[1].split("</p>")[0])


def hostile_results(text: str) -> dict[str, Any]:
    results = synthetic_results()
    for query in results["queries"][:3]:
        query |= {"text": text, "kind": text}
    results["corpus"] |= {"quarantined": [{"file": text, "reason": text}], "strata": {text: 3}}
    results["labels"] |= {"judges": {text: 1}, "models": [text]}
    named = results["cells"][0]["cell"]
    results["cells"][0] |= {
        "cell": text,
        "diagnosis": text,
        "expected": None,
    }  # only an imported run is named by its file
    counts = dict.fromkeys(("queries_missing", "queries_left_out", "ties"), 0)
    results["cells"][0]["provenance"]["imported"] = {"file_sha256": "ab" * 32, "tag": text} | counts
    results["cells"][0]["provenance"]["encoder"] |= {"encoder": text, text: [text, {text: text}]}
    results["plan"]["source"] = text
    panel = results["judging"]
    panel["seconds"][0] |= {"judge": text, "models": [text], "first_judges": [text], "recommended": text}
    second, sources = panel["seconds"][0], results["sources"]
    for cells in (second["by_cell"], second["cells"], panel["noise"]["cells"], sources["cells"], sources["by_list"]):
        cells[text] = cells.pop(named)
    panel["drift"] = dict.fromkeys([text], *panel["drift"].values())
    panel["noise"]["judge"] = text
    before = results["previous"]
    before |= {"chosen": text, "tier": text, "changed": [text]}
    before["cells"][text] = before["cells"].pop("bm25-okapi x whole_doc")
    return results


def test_a_line_of_a_million_characters_is_cut_and_says_so():
    results = synthetic_results()
    results["queries"][0]["text"] = "x" * 1_000_000
    html = page_of(results)
    assert f"{'x' * LONGEST_TEXT}… (1,000,000 characters in all)" in html
    assert "x" * (LONGEST_TEXT + 1) not in html
    assert len(html) < len(page_of(synthetic_results())) + 5 * LONGEST_TEXT


@pytest.mark.parametrize(
    ("value", "unsigned", "with_sign"),
    [
        (0.12345, "0.1235", "+0.1235"),
        (-0.02, "\u22120.0200", "\u22120.0200"),
        (0.0, "0.0000", "0.0000"),
        (-0.00001, "0.0000", "0.0000"),
        (0.00004, "0.0000", "0.0000"),
    ],
)
def test_figures_carry_their_sign_as_text_and_zero_has_none(value: float, unsigned: str, with_sign: str):
    assert places(value) == unsigned
    assert signed(value) == with_sign
