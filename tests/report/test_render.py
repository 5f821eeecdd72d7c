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
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.base.errors import InputError
from runner.base.figures import figure, percent, places, signed
from runner.base.schema import checked
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.results import Results
from runner.report.page_frame import LONGEST_TEXT, TEMPLATES
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


PARTS = [(), ("judging", "seconds", 0, "by_cell", 0), ("previous", "cells", 0), ("cells", 0, "gate", "nulls", 0)]


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


def test_a_rehearsal_says_loudly_that_it_never_counts_as_a_decision():
    html = rendered(kind="rehearsal")
    assert "<title>REHEARSAL: us_code version 1" in html
    assert "never counts" in words(html.split('class="lead"')[1].split("</p>")[0])
    assert "REHEARSAL" in words(html.split("<footer>")[1].split("</footer>")[0])
    assert "REHEARSAL" not in rendered()


def test_an_exploration_says_that_nothing_is_decided():
    html = rendered(kind="exploration", tier="baseline kept")
    assert "<title>EXPLORATION: us_code version 1" in html
    assert "nothing is decided" in words(html.split("<h1>")[1].split("</h1>")[0])


def test_a_provisional_page_counts_what_is_not_judged_and_bounds_every_cell():
    html = rendered(unjudged=407)
    assert "<title>PROVISIONAL: us_code" in html
    assert "407 of 4,587 pairs" in words(html.split("<h1>")[1].split("</h1>")[0])
    mean = synthetic_results(unjudged=407)["cells"][0]["bounds"]
    assert column(html, "measures-caption", 0)[-2:] == ["37", f"{mean[0]:.2f} to {mean[1]:.2f}"]
    complete = rendered()
    assert "provisional" not in words(complete)
    assert "nDCG@10 bounds" not in words(complete)


def test_the_figures_as_compared_are_those_of_the_results():
    results = synthetic_results()
    results["cells"][0]["test"] |= {"p_gain": 1 / 100_001}
    html = page_of(results)
    for place, row in enumerate(results["cells"]):
        shown = column(html, "tests-caption", place)
        assert (shown[0], shown[1]) == (row["cell"], f"{row['scores']['ndcg@10']['mean']:.4f}")
        if row["test"] is None:
            continue
        gain, (low, high) = row["differences"]["ndcg@10"], row["test"]["simultaneous"]
        assert shown[2:4] == [signed(gain["mean"]), f"[{signed(low)}, {signed(high)}]"]
        assert shown[5] == ("9 of 212" if gain["mean"] > 0 else "no gain")
        assert shown[6] == f"{gain['wins']} / {gain['ties']} / {gain['losses']}"
        assert shown[7] == signed(row["differences"]["recall@10"]["mean"])
        assert shown[8].endswith(row["recall_bound"]["state"])
    assert column(html, "tests-caption", 0)[4] == "<0.0001 bar 0.0400"
    assert "61 times in 100" in words(html)


def test_a_cell_outside_of_the_family_has_no_adjusted_figures():
    results = synthetic_results(kind="exploration")
    for row in results["cells"]:
        if row["test"]:
            row["test"] |= dict.fromkeys(("p_adjusted", "p_gain", "bar", "simultaneous"))
    first = column(page_of(results), "tests-caption", 0)
    assert "this cell alone" in first[3]
    assert first[4] == "none"


def test_a_control_that_misbehaves_is_told_from_those_that_behave():
    results = synthetic_results()
    results["controls"][1] |= {"passes": 44, "behaves": False}
    html = page_of(results)
    assert column(html, "controls-caption", 1) == ["random", "fail", "0.0100", "44 of 200", "at most 20", "no"]


def test_single_gold_verdicts_are_left_out_where_none_were_possible():
    results = synthetic_results()
    for row in results["cells"]:
        row["single_gold"] = {}
    assert "Not measured: no query has a relevant document" in words(page_of(results))


def test_the_null_gate_lists_every_null_of_every_cell():
    results = synthetic_results()
    results["cells"][1]["gate"]["nulls"][0] |= {"verdict": "fail", "p": 0.21}
    results["cells"][1]["gate"]["verdict"] = "fail"
    html = page_of(results)
    real = results["cells"][1]["scores"]["ndcg@10"]["mean"]
    table = html.split('id="gate-caption"')[1].split("</thead>")[1].split("</table>")[0].split("</tbody>")[:-1]
    bodies = [words(body.split("<tbody>")[1]) for body in table]
    assert bodies[1].startswith(f"{results['cells'][1]['cell']} gate: fail permuted qrels {real:.4f} 0.0312 [")
    assert "0.2100 fail random retrieval" in bodies[1]
    assert [body.count(" pass") for body in bodies[:3]] == [6, 4, 6]


def test_the_noise_floor_is_shown_or_said_to_be_missing():
    results = synthetic_results()
    results["noise_floor"] |= {"max_change": 0.0131}
    results["noise_floor"]["difference"] |= {"mean": 0.0004, "high": 0.0013, "wins": 1, "ties": 29}
    assert "1 of 30 queries changed, the largest by 0.0131" in words(page_of(results))
    assert "Not measured: there is no second run" in words(page_of({**results, "noise_floor": None}))


def test_a_taken_over_chunker_is_told_with_what_was_known_of_it():
    results = synthetic_results()
    assert "is taken over" not in page_of(results)
    results["plan"]["reuse"] = {"chunker": "usc_uslm_section_v1", "source": "us_code", "result": "not yet evaluated"}
    assert "was written for us_code and is taken over without code of its own" in words(page_of(results))


def test_commands_name_what_made_the_page():
    assert "per-source-eval verify us_code --deep" in rendered()
    assert "per-source-eval run us_code --rehearse\n" in rendered(kind="rehearsal")
    exploration = Outline(rendered(kind="exploration"))
    assert "explore us_code" in exploration.words
    assert "'mxbai-large-v1 x fixed_token_512_50' \\" in exploration.words
    assert "'arctic-l-v2.0 x fixed_token_512_50'" not in exploration.words
    assert "--rehearse" not in exploration.words
    assert "--check" not in exploration.words + rendered(unjudged=11)


def test_an_exploration_beside_a_rehearsals_baseline_is_one_of_the_rehearsal():
    results = synthetic_results(kind="exploration", names=NAMES[:3])
    assert "explore us_code --rehearse \\" in words(page_of(results))


def test_a_receipt_that_is_missing_is_said_to_be():
    assert "There is no receipt" in words(rendered())


SPEND = {
    "estimate_usd": 0.61,
    "embedding_usd": 0.48,
    "weights_usd": 0.002,
    "judging_usd": 1.25,
    "actual_usd": None,
    "gpu": "L4",
    "gpu_seconds": 2041.3,
    "price_per_second": 0.000222,
    "price_source": "list price, second-hand, 2026-06-27",
    "sessions": 4,
    "max_usd": 5.0,
}


def test_what_was_spent_stands_beside_the_estimate_the_bill_and_the_ceiling_with_weights_apart():
    html = rendered(synthetic_receipt() | {"spend": SPEND})
    assert "Cost 1.73 US dollars by list price" in words(html)
    rows = [column(html, "spend-caption", row) for row in range(6)]
    assert [row[1] for row in rows] == ["0.61", "0.48", "< 0.01", "not answered", "1.25", "5.00"]
    assert "2,041 seconds of L4 in 4 sessions, 0.000222 a second (list price, second-hand, 2026-06-27)" in rows[1][0]
    billed = rendered(synthetic_receipt() | {"spend": SPEND | {"actual_usd": 0.5512, "sessions": 1}})
    assert column(billed, "spend-caption", 3)[1] == "0.55"
    assert "in 1 session," in words(billed)


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


def test_a_ledger_that_is_gone_is_not_called_free() -> None:
    receipt = synthetic_receipt()
    receipt["backends"]["aa"] = backend("modal", {"device": "NVIDIA L4"})
    assert "not known: the ledger of this version is gone" in rendered(receipt)
    assert "none is metered" not in rendered(receipt)


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
    results["cells"][0] |= {"cell": text, "diagnosis": text}  # only an imported run is named by its file
    counts = dict.fromkeys(("queries_missing", "queries_left_out", "ties"), 0)
    results["cells"][0]["provenance"]["imported"] = {"file_sha256": "ab" * 32, "tag": text} | counts
    results["cells"][0]["provenance"]["encoder"] |= {"encoder": text, text: [text, {text: text}]}
    results["plan"]["source"] = text
    panel = results["judging"]
    panel["seconds"][0] |= {"judge": text, "models": [text], "first_judges": [text], "recommended": text}
    panel["seconds"][0]["by_cell"][1]["cell"] = panel["noise"]["cells"][0]["cell"] = text
    panel["drift"][0]["judge"] = panel["noise"]["judge"] = text
    before = results["previous"]
    before |= {"chosen": text, "tier": text, "changed": [text]}
    before["cells"][-1]["cell"] = before["cells"][-2]["cell"] = text
    return results


def test_hostile_text_is_still_readable():
    html = page_of(hostile_results(HOSTILE[0]))
    assert words(html).count(HOSTILE[0]) > 10
    bidi = page_of(hostile_results(HOSTILE[3]))
    assert "⟨U+202E⟩gnp.exe⟨U+2066⟩ שלום" in bidi


def test_a_line_of_a_million_characters_is_cut_and_says_so():
    results = synthetic_results()
    results["queries"][0]["text"] = "x" * 1_000_000
    html = page_of(results)
    assert f"{'x' * LONGEST_TEXT}… (1,000,000 characters in all)" in html
    assert "x" * (LONGEST_TEXT + 1) not in html
    assert len(html) < len(page_of(synthetic_results())) + 5 * LONGEST_TEXT


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 6)
@given(st.text(min_size=1, max_size=40))
def test_any_text_at_all_leaves_the_structure_as_it_is(text: str):
    results = synthetic_results(n_queries=3)
    plain = Outline(page_of(results)).elements
    results["labels"]["models"][0] = results["corpus"]["quarantined"][0]["file"] = text
    results["queries"][0]["text"] = f"{text}?"  # a query of white space alone is refused before any page
    assert Outline(page_of(results)).elements == plain


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


@given(st.floats(-1, 1))
def test_the_figure_shown_is_the_figure_compared(value: float):
    assert float(places(value).replace("\u2212", "-")) == round(value, 4)


def test_other_figures_read_as_a_reader_expects():
    assert [figure(v) for v in (None, True, 12345, -3, 0.25, "", "a")] == [
        "none", "yes", "12,345", "\u22123", "0.25", "empty", "a",
    ]  # fmt: skip
    assert [percent(share) for share in (0, 0.00001, 0.1234, 1)] == [
        "0.00\u202f%",
        "<\u20090.01\u202f%",
        "12.34\u202f%",
        "100.00\u202f%",
    ]
