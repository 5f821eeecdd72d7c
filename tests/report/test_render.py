import base64
import hashlib
import os
import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.base.canonical import json_bytes, rounded, sha256
from runner.base.errors import InputError
from runner.base.figures import figure, percent, places, signed
from runner.base.records import BM25Cell, HybridCell, parse_cell
from runner.base.schema import checked
from runner.decide.tiers import meets_criterion_5
from runner.eval_set import catalog
from runner.eval_set.plan import default_cells
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.shapes.plan import Rule
from runner.eval_set.shapes.results import Results
from runner.report.page_frame import LONGEST_TEXT, TEMPLATES
from runner.report.results_page.render import TEMPLATE_VERSION, page
from runner.report.rows import criterion_5
from tests.support import example_panel
from tests.support.example_results import scale

NEEDS = (
    "Which bills create a grant program for repairing rural bridges?",
    "H.R. 1234 section 3 definitions",
    "authority of the Secretary to waive matching requirements",
    "help for former soldiers who breathed poisonous smoke overseas",
    "penalties for late reporting of suspicious transactions",
)


def difference(values: np.ndarray, baseline: np.ndarray) -> dict[str, Any]:
    paired = values - baseline
    mean, half = float(paired.mean()) / 1e9, 1.96 * float(paired.std()) / 1e9 / len(paired) ** 0.5
    wins, losses = int((paired > 0).sum()), int((paired < 0).sum())
    counts = {"wins": wins, "ties": len(paired) - wins - losses, "losses": losses}
    return {"mean": mean, "low": mean - half, "high": mean + half, **counts}


def measure(values: np.ndarray) -> dict[str, Any]:
    mean, half = float(values.mean()) / 1e9, 1.96 * float(values.std()) / 1e9 / len(values) ** 0.5
    return {"mean": mean, "low": max(mean - half, 0.0), "high": min(mean + half, 1.0), "per_query": values.tolist()}


def encoder_facts(name: str) -> dict[str, Any]:
    spec = catalog.ENCODERS[name]
    return {
        "encoder": name,
        "hub_id": spec.hub_id,
        "revision": spec.revision,
        "query_prompt": spec.query_prompt,
        "document_prompt": spec.document_prompt,
        "max_tokens": spec.max_tokens,
        "dim": spec.dim,
        "method": "forward pass of the whole model",
    }


def provenance(name: str, n_chunks: int, share: float) -> dict[str, Any]:
    cell = parse_cell(name)
    dense = not isinstance(cell, BM25Cell)
    lost = round(share * n_chunks * 430)
    return {
        "schema_version": 4,
        "cell": name,
        "imported": None,
        "queries_sha256": sha256("queries"),
        "corpus_sha256": sha256("corpus"),
        "run_sha256": sha256(f"{name} run"),
        "chunk_run_sha256": sha256(f"{name} chunk run"),
        "chunks": {
            "count": n_chunks,
            "tokens_p50": 431,
            "tokens_p95": 512,
            "tokens_max": 512,
            "empty": 0,
            "duplicate_share": 0.0123,
            "coverage": 1.0,
            "outside_sections_share": 0.07,
            "boilerplate_share": 0.011,
            "chunks_per_document_max": 214,
            "degenerate": [],
            "lengths": {
                "width": 32,
                "counts": [0] * 12 + [n_chunks // 2] * 2 + [n_chunks - n_chunks // 2 * 2] * 2,
                "limit": 512,
            },
        },
        "encoder": encoder_facts(cell.encoder) if not isinstance(cell, BM25Cell) else None,
        "probe": {"paraphrase_min": 0.6123, "stranger_max": 0.2034, "digest": sha256("probe")} if dense else None,
        "truncation": {
            "tokens": n_chunks * 430,
            "tokens_p50": 428,
            "tokens_p95": 540,
            "tokens_max": 611,
            "lost": lost,
            "share": lost / (n_chunks * 430),
            "chunks": n_chunks,
            "chunks_cut": lost // 90,
            "lengths": {"width": 32, "counts": [0] * 12 + [n_chunks - lost // 90, 0, 0, 0, lost // 90], "limit": 512},
        }
        if dense
        else None,
        "bm25": {"library": "bm25s", "k1": 1.5, "b": 0.75, "stop words": "Lucene's 33 English stop words"}
        if isinstance(cell, BM25Cell | HybridCell)
        else None,
        "method": "exact cosine over all chunks; a document by its best chunk",
    }


NULLS = {
    "permuted qrels": 0.0312,
    "random retrieval": 0.0048,
    "most retrieved": 0.0291,
    "length sorted": 0.0103,
    "shuffled top 10": 0.3521,
}
"""Null systems by name, with the mean that each is given here."""


CONSTANT = ("most retrieved", "length sorted")


def lists(cells: list[str], query_ids: list[str]) -> dict[str, Any]:
    """Four documents a query, all of which every cell finds but the last; the first is relevant and read twice."""
    again = {"judge": "reader-b", "model": "", "round": 1, "grade": 1, "reason": "names no grant"}
    pairs = [
        {
            "document": place,
            "grade": grade,
            "judge": "reader-a" if grade is not None else "",
            "reason": f"reason {place}" if grade is not None else "",
            "spans": [[10, 90]] if grade == 3 else [],
            "readings": [again] if grade == 3 else [],
            "passages": [],
        }
        for place, grade in enumerate((3, 1, 0, None))
    ]
    hits = {cell: [[(place + turn) % 3, 0, 100] for place in range(3)] for turn, cell in enumerate(cells)}
    return {
        "depth": 3,
        "texts": False,
        "documents": [
            {"doc_id": f"d{place}", "url": f"https://www.example.gov/d{place}", "title": ""} for place in range(4)
        ],
        "queries": [{"id": query_id, "relevant": 1, "documents": pairs, "hits": hits} for query_id in query_ids],
    }


def curve(values: np.ndarray) -> dict[str, Any]:
    """Recall that grows with the rank, and what the first tokens hold."""
    mean = float(values.mean()) / 1e9

    def points(*shares: tuple[int, float]) -> list[dict[str, Any]]:
        return [{"at": at, "mean": mean * part, "low": mean * part * 0.9, "high": mean * part} for at, part in shares]

    return {"by_rank": points((1, 0.2), (10, 0.7), (100, 1.0)), "by_tokens": points((512, 0.3), (8192, 0.9))}


def paired_test(gain: float) -> dict[str, Any]:
    return {
        "p": 0.0312,
        "exact": False,
        "p_t": 0.0298,
        "p_adjusted": 0.1734,
        "p_skew": 0.1911,
        "p_holm": 0.2184,
        "interval": [gain - 0.04, gain + 0.04],
        "simultaneous": [gain - 0.07, gain + 0.07],
        "cohens_d": 0.41,
        "sd": 0.1312,
        "left_out": [gain - 0.006, gain + 0.005],
        "influential": "q07",
    }


def single_gold(real: float) -> dict[str, Any]:
    names = ("permuted gold", "uniform gold", "random retrieval", "marginal-matched gold")
    nulls = [
        {"name": name, "mean": 0.05, "delta": real - 0.05, "p": 1 / 2001, "smallest_p": 1 / 2001, "passed": True}
        for name in names
    ]
    return {
        "measure": "recall@10",
        "n_queries": 29,
        "real": real,
        "nulls": nulls,
        "verdict": "pass",
        "reasons": [],
    }


def gate(cell: str, real: float) -> dict[str, Any]:
    nulls = []
    for name, mean in NULLS.items():
        null = {
            "name": name,
            "mean": mean,
            "sd": 0.011,
            "low": mean * 0.5,
            "median": mean,
            "high": mean * 1.6,
            "dots": [round(mean * (0.5 + place / 40), 9) for place in range(40)] if name not in CONSTANT else [],
        }
        nulls.append({**null, "delta": real - mean, "p": 1 / 2001, "smallest_p": 1 / 2001, "verdict": "pass"})
    settings_ = {"measure": "ndcg@10", "draws": 2000, "tau": 0.05, "alpha": 0.05}
    return {"cell": cell, "real": real, "nulls": nulls, "verdict": "pass", **settings_}


def synthetic_results(
    *,
    kind: str = "production",
    unjudged: int = 0,
    tier: str = "candidate",
    n_queries: int = 30,
    source: str = "us_code",
) -> dict[str, Any]:
    """A results.json with the default cells of a source and scores that a seed makes; shapes real, figures invented."""
    spec = catalog.SOURCES[source]
    cells = default_cells(spec, rehearsal=kind == "rehearsal")
    generator = np.random.default_rng(np.random.PCG64(7))
    rule = Rule(min_gain=0.02, max_recall_loss=0.02)
    ease = generator.beta(2, 1.4, n_queries)

    def values(shift: float) -> np.ndarray:
        return np.rint(np.clip(ease + shift + generator.normal(0, 0.12, n_queries), 0, 1) * 1e9).astype(np.int64)

    table = {
        cell: {name: values(0.01 * index - 0.05) for name in ("ndcg@10", "recall@10", "recall@100", "mrr", "mrr@10")}
        for index, cell in enumerate(cells)
    }
    base = table[cells[0]]
    rows = []
    for index, cell in enumerate(cells):
        judged = np.full(n_queries, 10**9 if not unjudged else 9 * 10**8, np.int64)
        scores = {name: measure(value) for name, value in {**table[cell], "judged@10": judged}.items()}
        mean = scores["ndcg@10"]["mean"]
        differences = {name: difference(table[cell][name], base[name]) for name in ("ndcg@10", "recall@10", "mrr")}
        gain, recall = differences["ndcg@10"]["mean"], differences["recall@10"]["mean"]
        rows.append(
            {
                "cell": cell,
                "role": "baseline" if index == 0 else "preregistered" if kind != "exploration" else "exploratory",
                "scores": scores,
                "differences": differences,
                "test": paired_test(gain) if index > 0 else None,
                "guard": {"state": "inconclusive", "low": recall - 0.05, "high": recall + 0.05, "p": 0.1919}
                if index > 0
                else None,
                "confirmed": False,
                "short_of": ["may be chance (adjusted p 0.1734)"] if index > 0 else [],
                "diagnosis": "",
                "single_gold": [single_gold(0.55)],
                "meets_criterion_5": index > 0 and meets_criterion_5(gain, recall, rule),
                "gate": gate(cell, mean),
                "curve": curve(table[cell]["recall@100"]),
                "unjudged": unjudged // len(cells),
                "bounds": [mean, min(mean + 0.03 * bool(unjudged), 1.0)],
                "pool": example_panel.cell_pool(gain, gain).model_dump(),
                "sensitivity": example_panel.sensitivity(mean, gain).model_dump(),
                "provenance": provenance(cell, 3000 + 700 * index, 0.04 * (index % 3)),
            }
        )
    rows.sort(key=lambda row: (-row["scores"]["ndcg@10"]["mean"], row["cell"]))
    plan = {
        "schema_version": 2,
        "source": source,
        "version": 1,
        "baseline": cells[0],
        "cells": cells,
        "sample": {"size": 750, "seed": 2026},
        "pool_depth": 30,
        "relevant_grade": 2,
        "rule": rule.model_dump(),
        "bootstrap": {"resamples": 10000, "confidence": 0.95, "seed": 2026},
        "significance": {"method": "sign-flip max-T v1", "draws": 100000, "alpha": 0.05, "seed": 2026},
        "null_gate": {"nulls": "graded v1", "draws": 2000, "tau": 0.05, "alpha": 0.05, "seed": 2026},
    }
    kinds, origins = ("topic", "citation", "authority", "paraphrase"), ("hand", "generated", "harvested")
    return {
        "schema_version": 7,
        "source": source,
        "version": 1,
        "kind": kind,
        "provisional": bool(unjudged),
        "plan": plan,
        "preregistration_sha256": sha256("preregistration"),
        "judge_prompt_sha256": sha256("judge"),
        "collection": None,
        "queries": [
            {
                "id": f"q{number:02d}",
                "text": NEEDS[number % len(NEEDS)],
                "kind": kinds[number % 4],
                "origin": origins[number % 3],
                "source_document": "",
                "stratum": "",
                "note": "",
            }
            for number in range(1, n_queries + 1)
        ],
        "corpus": {
            "documents": 748,
            "n_read": 1903,
            "n_chars": 61_204_377,
            "quarantined": [{"file": "usc/title-42/chapter-7.xml", "reason": "no body: neither main nor legis-body"}],
            "strata": {
                f"title {number:02d}/{length}": 11 * number for number in (5, 26, 42) for length in ("long", "short")
            },
            "manifest_sha256": sha256("corpus"),
            "archive_sha256": sha256("archive"),
            "sample": {"size": 750, "seed": 2026},
            "reader": "us_code",
        },
        "labels": {
            "lines": 4211,
            "sha256": sha256("labels"),
            "pairs": 4180,
            "second_readings": 31,
            "pool_pairs": 4180 + unjudged,
            "unjudged_pairs": unjudged,
            "judges": {"reader-a": 4180, "reader-b": 31},
            "models": ["judge-model-1"],
            "grades": {"0": 3100, "1": 611, "2": 320, "3": 180},
        },
        "cells": rows,
        "controls": [
            {"name": "oracle", "expected": "pass", "mean": 1.0, "draws": 1, "passes": 1, "bound": 1, "behaves": True},
            {
                "name": "random",
                "expected": "fail",
                "mean": 0.01,
                "draws": 200,
                "passes": 2,
                "bound": 20,
                "behaves": True,
            },
        ],
        "scale": scale(*(row["cell"] for row in rows)).model_dump(),
        "lists": lists([row["cell"] for row in rows], [f"q{number:02d}" for number in range(1, n_queries + 1)]),
        "noise_floor": {
            "cell": cells[0],
            "difference": {"mean": 0.0, "low": 0.0, "high": 0.0, "wins": 0, "ties": n_queries, "losses": 0},
            "max_change": 0.0,
            "queries_changed": 0,
        },
        "judging": example_panel.panel(cells, cells[0]).model_dump(),
        "spans": example_panel.spans(cells, cells[0], n_queries).model_dump(),
        "slices": [part.model_dump() for part in example_panel.slices(cells)],
        "previous": example_panel.previous(cells).model_dump(),
        "outcome": {
            "tier": "no decision" if unjudged else tier,
            "candidates": [cells[-1]],
            "sentence": f"Candidate: {cells[-1]}, gains +0.0412 nDCG@10 over the baseline (95 % interval +0.0011 to "
            f"+0.0804, {n_queries} queries). A difference below 0.080 may be chance; the operator decides.",
            "confirmed": [],
            "not_shown": "It is not confirmed: it may be chance (adjusted p 0.1734).",
            "next_step": "The next cheapest experiment: about 240 queries in all would show a gain of 0.0200.",
            "baseline_gate": "pass",
            "false_alarm": 0.6134,
            "best_gain_corrected": 0.0151,
            "queries_needed": 240,
            "detectable": 0.0912,
        },
        "weaknesses": [
            f"{n_queries} queries show a difference of 0.080 nDCG@10 with 80 % power (SD of differences .15); the rule "
            "asks for 0.02, so a candidate may be chance, and the best of 10 cells looks better than it is.",
            "Judgments are per document: a chunk's hit counts as its document's, by the best chunk, so a chunker that "
            "finds the right document through the wrong passage is not told apart.",
            "Recall is relative to the pool: a relevant document that no cell retrieved is not known.",
            "Scores come from exact search in this tool; the production database (quantised vectors, its own full-text "
            "index) was not measured.",
        ],
    }


def synthetic_receipt() -> dict[str, Any]:
    cells = default_cells(catalog.SOURCES["us_code"], rehearsal=False)
    return {
        "schema_version": 2,
        "finished_on": "2026-11-22T21:40:03+00:00",
        "tool_version": "0.1.0",
        "python": "3.11.9",
        "platform": "Linux-6.1.0-x86_64-with-glibc2.36",
        "cpu_count": 2,
        "libraries": {"numpy": "2.4.6", "bm25s": "0.3.16", "torch": "2.13.0"},
        "seconds": {"corpus": 12.031, "cells": 1804.5, "score": 3.25},
        "cells": {
            cell: {"embed_seconds": 91.5, "retrieve_seconds": 0.812, "index_bytes": 12_345_678}
            for cell in [*cells[:8], "aa"]
        }
        | {"bm25 x whole_doc": {"retrieve_seconds": 0.4}},
        "backends": {cell: backend() for cell in [*cells[:8], "aa"]},
        "spend": None,
    }


def backend(name: str = "local", served: dict[str, str] | None = None, **identity: Any) -> dict[str, Any]:
    versions = {"sentence-transformers": "6.2.0", "torch": "2.13.0"}
    facts = {"name": name, "device": "cpu", "dtype": "float32", "versions": versions} | identity
    return {"name": name, "identity": facts, "served": served or {"device": "cpu"}, "parity_sha256": None}


def rendered(receipt: dict[str, Any] | None = None, **changes: Any) -> str:
    return page_of(synthetic_results(**changes), receipt)


def page_of(results: dict[str, Any], receipt: dict[str, Any] | None = None) -> str:
    measured = None if receipt is None else Receipt.model_validate(receipt)
    return page(Results.model_validate(results), measured).decode()


VOID = {"meta", "wbr", "br", "hr", "img", "link", "input"}
CELLS, ROWS = {"td", "th"}, {"td", "th", "tr"}
IMPLIED = {
    "td": CELLS,
    "th": CELLS,
    "tr": ROWS,
    "tbody": {*ROWS, "thead", "tbody"},
    "tfoot": {*ROWS, "thead", "tbody"},
    "dt": {"dt", "dd"},
    "dd": {"dt", "dd"},
    "li": {"li"},
    "option": {"option"},
}
"""What a tag ends that HTML lets stand open before it."""
OMITTED = {*ROWS, "thead", "tbody", "tfoot", "li", "dt", "dd", "option", "p"}
"""What the end of their parent ends."""


class Outline(HTMLParser):
    """Elements, attributes and text of a page; raises where an element is closed that is not open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert set(self.open) <= OMITTED

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        while self.open and self.open[-1] in IMPLIED.get(tag, ()):
            self.end()
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open[-1] != tag and self.open[-1] in OMITTED:
            self.end()
        assert self.open[-1:] == [tag]
        self.end()

    def end(self) -> None:
        if self.open.pop() in ("td", "th", "dt", "dd", "li", "p", "caption", "summary", "option"):
            self.text.append(" ")

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self.open):
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join("".join(self.text).split())


def words(html: str) -> str:
    return Outline(html).words


def column(html: str, caption: str, row: int) -> list[str]:
    """The texts of one body row of the table whose caption has that id."""
    table = html.split(f'id="{caption}"')[1].split("</table>")[0]
    line = re.findall(r"<tr[^>]*>(.*?)</tr>", table.split("<tbody>", 1)[1], re.DOTALL)[row]
    return [words(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)]


def test_the_same_inputs_give_the_same_bytes_in_any_process_and_before_and_after_the_file_is_written():
    results, receipt = synthetic_results(), Receipt.model_validate(synthetic_receipt())
    first = page(Results.model_validate(results), receipt)
    assert page(Results.model_validate(rounded(results)), receipt) == first
    assert page(Results.model_validate_json(json_bytes(results)), receipt) == first
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


PARTS = [
    (),
    ("corpus",),
    ("corpus", "sample"),
    ("labels",),
    ("noise_floor",),
    ("judging",),
    ("judging", "agreement", "seconds", 0, "by_cell", 0),
    ("judging", "noise"),
    ("judging", "others", 0, "cells", 0),
    ("judging", "people", "cells", 0),
    ("spans",),
    ("slices", 0),
    ("previous", "cells", 0),
    ("outcome",),
    ("cells", 0, "gate"),
    ("cells", 0, "pool", "kin"),
    ("cells", 0, "sensitivity"),
    ("cells", 0, "gate", "nulls", 0),
    ("cells", 0, "provenance"),
    ("cells", 0, "provenance", "chunks"),
]


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
    assert tags["h1"] == tags["main"] == tags["title"] == 1
    levels = [int(tag[1]) for tag, _ in elements if re.fullmatch("h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert tags["table"] == tags["caption"]
    assert all("scope" in attributes for tag, attributes in elements if tag == "th")
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    named = {a[key] for _, a in elements for key in ("aria-labelledby",) if key in a}
    linked = {str(a["href"])[1:] for tag, a in elements if tag == "a" and str(a["href"]).startswith("#")}
    assert named | linked <= set(ids)
    assert tags["table"] == sum(a.get("class") == "scroll" and a.get("tabindex") == "0" for _, a in elements)


def test_a_rehearsal_says_loudly_that_it_never_counts_as_a_decision():
    html = rendered(kind="rehearsal")
    said = words(html)
    assert "<title>REHEARSAL: us_code version 1" in html
    assert re.search(r"<h1>.*REHEARSAL.*us_code", html)
    assert "never counts as a decision" in said
    assert "REHEARSAL" in words(html.split("<footer>")[1].split("</footer>")[0])
    assert "Verdict:" not in said
    assert "REHEARSAL" not in rendered()


def test_an_exploration_says_that_nothing_is_decided():
    html = rendered(kind="exploration", tier="baseline kept")
    assert "<title>EXPLORATION: us_code version 1" in html
    assert "Nothing is decided" in words(html)
    assert "An exploration has no decision.json." in words(html)
    assert "Verdict:" not in words(html)


def test_a_provisional_page_counts_what_is_not_judged_and_bounds_every_cell():
    html = rendered(unjudged=407)
    assert "<title>PROVISIONAL: us_code" in html
    assert "Provisional: 407 of 4,587 pairs of the pool are not judged yet." in words(html)
    mean = synthetic_results(unjudged=407)["cells"][0]["bounds"]
    assert column(html, "measures-caption", 0)[-2:] == ["37", f"{mean[0]:.2f} to {mean[1]:.2f}"]
    complete = rendered()
    assert "Provisional" not in words(complete)
    assert "nDCG@10 bounds" not in words(complete)


@pytest.mark.parametrize("tier", ["confirmed", "candidate", "inconclusive", "baseline kept", "no decision"])
def test_the_verdict_stands_first_with_its_tier(tier: str):
    said = words(rendered(tier=tier))
    assert f"Verdict: {tier} (" in said
    sentence = "gains +0.0412 nDCG@10 over the baseline"
    assert said.index(tier) < said.index(sentence) < said.index("What it does not show.")
    assert ("is recorded in decision.json beside this page" in said) == (tier != "no decision")


def test_every_weakness_is_listed_among_what_the_result_does_not_show_and_the_sections_lead_there():
    results = synthetic_results()
    html = page_of(results)
    limits = words(html.split('<section aria-labelledby="limits">')[1].split("</section>")[0])
    for weakness in results["weaknesses"]:
        assert weakness in limits
    assert '<a href="#limits">What it does not show</a>' in html


def test_the_ranking_keeps_the_order_of_the_results_and_no_figure_is_finer_than_its_interval_allows():
    results = synthetic_results()
    html = page_of(results)
    for place, row in enumerate(results["cells"]):
        shown = column(html, "ranking-caption", place)
        assert shown[:2] == [str(place + 1), f"{row['cell']} {row['role']}"]
        for measure, at in (("ndcg@10", 2), ("recall@10", 6), ("mrr", 7)):
            score = row["scores"][measure]
            assert shown[at] == f"{score['mean']:.2f} [{score['low']:.2f}, {score['high']:.2f}]"
        gain = row["differences"]["ndcg@10"]
        if row["role"] != "baseline":
            assert float(shown[3].replace("\u2212", "-")) == pytest.approx(gain["mean"], abs=0.005)
            assert shown[4:6] == ["0.17", f"{gain['wins']} / {gain['ties']} / {gain['losses']}"]
        else:
            assert shown[3:6] == ["baseline"] * 3
        assert shown[8] == "100 %"
        assert shown[13] == "pass"


def test_the_ranking_has_what_the_receipt_measured_and_says_where_it_did_not():
    results, receipt = synthetic_results(), synthetic_receipt()
    html = page_of(results, receipt)
    for place, row in enumerate(results["cells"]):
        shown = column(html, "ranking-caption", place)[10:13]
        if row["cell"] == "bm25 x whole_doc":
            assert shown == ["no encoder", "13.3", "not measured"]
        elif row["cell"] in receipt["cells"]:
            assert shown == ["91.50", "27.1", "12.35"]
        else:
            assert shown == ["not measured"] * 3
    assert column(page_of(results), "ranking-caption", 0)[10:13] == ["not measured"] * 3
    assert "no latency of a production database" in words(html)
    assert "Money is metered for the whole run and not by cell: 1.73 US dollars" in words(
        page_of(results, receipt | {"spend": SPEND})
    )


def test_the_captions_state_measures_rule_and_that_intervals_are_not_adjusted():
    said = words(rendered())
    for claim in (
        "linear gain",
        "a grade of 2 or more as relevant",
        "relative to what is judged",
        "best chunk (MaxP)",
        "95 % bootstrap intervals",
        "not adjusted for the 11 cells compared",
        "at least 0.02 nDCG@10",
        "at most 0.02 Recall@10",
        "down to rank 100",
    ):
        assert claim in said.replace("\xa0", " ")


def test_the_tests_against_the_baseline_list_every_other_cell_with_both_intervals_and_p_values():
    results = synthetic_results()
    results["cells"][0]["test"] |= {"p_adjusted": 1 / 100_001, "exact": True}
    html = page_of(results)
    rows = [row for row in results["cells"] if row["test"]]
    first, gain = column(html, "tests-caption", 0), rows[0]["differences"]["ndcg@10"]
    assert first[0].startswith(rows[0]["cell"])
    assert first[1] == f"{rows[0]['scores']['ndcg@10']['mean']:.4f}"
    assert first[2] == f"{signed(gain['mean'])} d +0.41 [{signed(gain['low'])}, {signed(gain['high'])}]"
    assert first[4] == "<0.0001"
    assert first[7] == "0.0312 exact"
    assert first[9].endswith("q07")
    assert [column(html, "guard-caption", place)[6] for place in range(len(rows))] == ["inconclusive"] * len(rows)
    assert "criterion 5 alone would flag some cell in 61 % of such evaluations" in words(html).replace("\xa0", " ")


def test_a_cell_outside_of_the_family_has_no_adjusted_figures():
    results = synthetic_results(kind="exploration")
    for row in results["cells"]:
        if row["test"]:
            row["test"] |= {"p_adjusted": None, "p_skew": None, "p_holm": None, "simultaneous": None}
    first = column(page_of(results), "tests-caption", 0)
    assert (first[3], first[4], first[5], first[8]) == ("not adjusted", "none", "none", "none 0.0298")


def test_a_control_that_misbehaves_is_told_from_those_that_behave():
    results = synthetic_results()
    results["controls"][1] |= {"passes": 44, "behaves": False}
    html = page_of(results)
    assert column(html, "controls-caption", 0) == ["oracle", "pass", "1.0000", "1 of 1", "at least 1", "yes"]
    assert column(html, "controls-caption", 1) == ["random", "fail", "0.0100", "44 of 200", "at most 20", "no"]


def test_the_verdict_says_what_it_does_not_show_and_what_to_do_next():
    results = synthetic_results()
    said = words(page_of(results))
    for sentence in ("sentence", "not_shown", "next_step"):
        assert results["outcome"][sentence] in said


def test_single_gold_verdicts_have_a_row_a_measure_and_are_left_out_where_none_were_possible():
    results = synthetic_results()
    first = column(page_of(results), "single-caption", 0)
    assert first[1:3] == ["recall@10", "0.5500"]
    assert first[3] == "+0.5000 p 0.0005"
    for row in results["cells"]:
        row["single_gold"] = []
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
    results["noise_floor"] |= {"max_change": 0.0131, "queries_changed": 1}
    results["noise_floor"]["difference"] |= {"mean": 0.0004, "high": 0.0013, "wins": 1, "ties": 29}
    assert "1 of 30 queries changed, the largest by 0.0131" in words(page_of(results))
    assert "Not measured: there is no second run" in words(page_of({**results, "noise_floor": None}))


def test_chunk_health_says_what_is_degenerate_and_truncation_counts_the_encoders_own_tokens():
    results = synthetic_results()
    first = results["cells"][0]["provenance"]["chunks"]
    first |= {"degenerate": ["6.1% of the chunks repeat an earlier one, more than 5%"], "empty": 7}
    html = page_of(results)
    shown = column(html, "health-caption", 0)
    assert shown[0] in results["cells"][0]["cell"]
    assert shown[6] == "7"
    assert shown[-1] == "6.1% of the chunks repeat an earlier one, more than 5%"
    assert column(html, "health-caption", 1)[-1] == "no"
    assert "428 / 540 / 611" in words(html)


def test_a_taken_over_chunker_is_told_with_what_was_known_of_it():
    results = synthetic_results()
    assert "is taken over" not in page_of(results)
    results["plan"]["reuse"] = {"chunker": "usc_uslm_section_v1", "source": "us_code", "result": "not yet evaluated"}
    assert "was written for us_code and is taken over without code of its own" in words(page_of(results))


def test_every_query_shows_its_score_in_every_cell_at_two_places():
    results = synthetic_results()
    html = page_of(results)
    rows = {row[0]: row[1:] for row in (column(html, "queries-caption", place) for place in range(30))}
    for place, query in enumerate(results["queries"]):
        scores = [f"{row['scores']['ndcg@10']['per_query'][place] / 1e9:.2f}" for row in results["cells"]]
        assert rows[query["id"]][:3] == [query["text"], query["kind"], query["origin"]]
        assert rows[query["id"]][-len(scores) :] == scores


def test_corpus_labels_and_provenance_are_on_the_page():
    results = synthetic_results()
    said = words(page_of(results))
    for fact in (
        "748 documents (61,204,377 characters)",
        "usc/title-42/chapter-7.xml no body: neither main nor legis-body",
        "title 42/long 462",
        "4,180 pairs of query and document are judged, in 4,211 lines",
        "2 320 7.60",
        "reader-b (31)",
        "revision edc2df7b6c25794b340229ca082e7c78782e6374",
        "stop words Lucene's 33 English stop words",
        f"page template {TEMPLATE_VERSION}".capitalize(),
        sha256("preregistration"),
        sha256("labels"),
        sha256("judge"),
        sha256(json_bytes(results)),
        "min_gain: 0.02",
    ):
        assert fact in said


def test_commands_name_what_made_the_page():
    assert "bin/per-source-eval.py render --source=us_code --check" in rendered()
    assert "bin/per-source-eval.py --source=us_code --rehearse\n" in rendered(kind="rehearsal")
    exploration = Outline(rendered(kind="exploration"))
    assert "--cells 'mxbai-large-v1 x fixed_token_512_50' \\" in exploration.words
    assert "--cells 'arctic-l-v2.0 x fixed_token_512_50'" not in exploration.words
    assert "--rehearse" not in exploration.words
    assert "--check" not in exploration.words + rendered(unjudged=11)


def test_an_exploration_beside_a_rehearsals_baseline_is_one_of_the_rehearsal():
    results = synthetic_results(kind="exploration")
    results["plan"]["baseline"] = "minilm-l6-v2 x fixed_token_512_50"
    assert "--source=us_code --rehearse \\" in words(page_of(results))


def test_the_receipt_is_shown_or_said_to_be_missing():
    said = words(rendered(synthetic_receipt()))
    for fact in (
        "Cost none is metered",
        "cells 1804.50",
        "torch 2.13.0",
        "the baseline once more (A/A) 91.5 12,345,678 0.812",
    ):
        assert fact in said
    assert "bm25 x whole_doc not measured not measured 0.4" in said
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
) | {"parity_sha256": "0123456789ab" + "f" * 52}
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


def test_every_embedded_cell_says_backend_device_number_format_libraries_revision_and_parity():
    receipt = synthetic_receipt()
    html = rendered(receipt)
    assert len(receipt["backends"]) == html.split('id="backends-caption"')[1].split("</table>")[0].count("<tr>") - 1
    local = ["local", "cpu", "float32", "sentence-transformers 6.2.0, torch 2.13.0", "as catalogued", "the reference"]
    assert column(html, "backends-caption", 0) == ["arctic-l-v2.0 x fixed_token_1024_100", *local]
    assert column(html, "backends-caption", 8)[0] == "the baseline once more (A/A)"
    html = rendered(receipt | {"backends": {"a x b": MODAL, "c x d": SERVED}})
    remote = ["Modal", "NVIDIA L4", "float16", "sentence-transformers 6.2.0, torch 2.13.0+cu126"]
    checked_weights = "as catalogued, weights c0ffeec0ffee"
    assert column(html, "backends-caption", 0) == ["a x b", *remote, checked_weights, "cuda: 1", "0123456789ab"]
    address = "HTTP, tei, http://gpu-7.example:8080/embed"
    unproven = "unverified: the server does not prove which revision it serves"
    served = [address, "gpu-7.example", "not said", "not said", unproven, "model: all-mpnet", "not checked"]
    assert column(html, "backends-caption", 1) == ["c x d", *served]


def test_a_revision_that_a_server_states_is_given_as_its_word_and_an_unproven_one_is_a_limit_of_the_result():
    stated = SERVED | {"served": {"revision": "unverified", "model_sha": "ed" * 20, "model_dtype": "float16"}}
    html = rendered(synthetic_receipt() | {"backends": {"a x b": stated, "c x d": SERVED}})
    format_and_revision = [column(html, "backends-caption", 0)[place] for place in (3, 5)]
    assert format_and_revision == ["float16", "edededededed, as the server says"]
    limits = words(html.split('<section aria-labelledby="limits">')[1].split("</section>")[0])
    assert "By the receipt, a server over HTTP embedded some cells" in limits
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


def test_a_receipt_of_an_earlier_schema_is_refused_by_its_number():
    with pytest.raises(InputError, match="is of schema version 1, and this release reads 2"):
        checked(Receipt, synthetic_receipt() | {"schema_version": 1}, "receipt.json")


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


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_inert_wherever_it_comes_from(text: str):
    results, receipt = hostile_results(text), synthetic_receipt()
    receipt |= {"platform": text, "libraries": {text: text}, "seconds": {text: 1.0}, "cells": {text: {text: 2.0}}}
    hostile = backend("http", {"device": text, text: text}, api=text, url=text, dtype=text, versions={text: text})
    receipt |= {"backends": {text: hostile, "aa": hostile | {"served": {}}}}
    receipt["spend"] = SPEND | {"gpu": text, "price_source": text}
    html = page_of(results, receipt)
    plain = Outline(page_of(synthetic_results(), synthetic_receipt() | {"backends": {"x": MODAL, "y": SERVED}}))
    assert {tag for tag, _ in Outline(html).elements} == {tag for tag, _ in plain.elements}
    names = {name for _, attributes in Outline(html).elements for name in attributes}
    assert names == {name for _, attributes in plain.elements for name in attributes}
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", html)
    assert "49" not in words(html.split('class="sentence"')[1].split("</p>")[0])


def hostile_results(text: str) -> dict[str, Any]:
    results = synthetic_results()
    results["source"] = text
    for query in results["queries"][:3]:
        query |= {"text": text, "kind": text}
    results["corpus"] |= {"quarantined": [{"file": text, "reason": text}], "strata": {text: 3}, "reader": text}
    results["labels"] |= {"judges": {text: 1}, "models": [text]}
    results["weaknesses"] = [text]
    results["outcome"]["sentence"] = text
    for row in results["judging"]["people"]["cells"]:
        row["cell"] = text if row["cell"] == results["cells"][0]["cell"] else row["cell"]
    results["cells"][0]["cell"] = text
    results["cells"][0]["provenance"]["encoder"] |= {text: [text, {text: text}]}
    results["plan"]["source"] = text
    pair = results["lists"]["queries"][0]["documents"][0]
    pair |= {"judge": text, "reason": text, "readings": [pair["readings"][0] | {"judge": text, "reason": text}]}
    results["lists"]["documents"][0] |= {"doc_id": text, "url": text, "title": text}
    results["lists"]["queries"][0]["hits"] = {text: [[0, 0, 10]]}
    panel = results["judging"]
    panel["agreement"]["seconds"][0] |= {"judge": text, "models": [text], "first_judges": [text]}
    panel["agreement"]["seconds"][0]["by_cell"][1] |= {"cell": text, "unknown": text}
    panel["agreement"]["drift"][0]["judge"] = panel["noise"]["judge"] = panel["others"][0]["judge"] = text
    panel["noise"]["chosen"] = panel["noise"]["cells"][0]["cell"] = panel["others"][0]["recommended"] = text
    panel["people"] |= {"people": [text]}
    panel["people"]["cells"][-1]["unknown"] = text
    results["slices"][0]["name"] = text
    before = results["previous"]
    before["decision"] |= {"cell": text, "tier": text}
    before["queries"] |= {"changed": [text], "new": [text], "gone": [text]}
    before |= {"settings": [text], "cells_new": [text], "cells_gone": [text]}
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


@settings(max_examples=settings().max_examples // 6)
@given(st.text(min_size=1, max_size=40))
def test_any_text_at_all_leaves_the_structure_as_it_is(text: str):
    results = synthetic_results(n_queries=3)
    plain = Outline(page_of(results)).elements
    results["weaknesses"][0] = results["corpus"]["quarantined"][0]["file"] = text
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


@pytest.mark.parametrize(
    ("gain", "recall", "meets", "said"),
    [
        (0.02, -0.02, True, "yes"),
        (0.01994, 0.0, False, "no: gains less than 0.02 nDCG@10"),
        (0.05, -0.03, False, "no: loses more than 0.02 Recall@10"),
        (-0.1, -0.1, False, "no: gains less than 0.02 nDCG@10 and loses more than 0.02 Recall@10"),
    ],
)
def test_criterion_5_is_said_in_words(gain: float, recall: float, meets: bool, said: str):
    differences = {"ndcg@10": {"mean": gain}, "recall@10": {"mean": recall}}
    row = {"role": "preregistered", "meets_criterion_5": meets, "differences": differences}
    rule = {"min_gain": 0.02, "max_recall_loss": 0.02}
    assert criterion_5(row, rule) == said
    assert criterion_5({**row, "role": "baseline"}, rule) == "is the baseline"
