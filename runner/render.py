"""results.html: one self-contained page, a pure function of results, receipt and the templates."""

import base64
import hashlib
import re
import shlex
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from runner import catalog
from runner.agreement.panel import can_say
from runner.agreement.schemas import Agreement
from runner.canonical import JSON, json_bytes, rounded, sha256
from runner.decision_schemas import Receipt
from runner.distractors.chart import chart
from runner.embedded import embedded
from runner.eval_set import DRIVER
from runner.records import SCORE_UNIT
from runner.result_schemas import Results
from runner.tiers import p_text, whole_percent

TEMPLATE_VERSION = 6
"""Raised with every change of a template or of this module that changes the page; the page names it."""

TEMPLATES = Path(__file__).parents[1] / "templates"

LONGEST_TEXT = 2_000
"""Characters shown of any one text; the page says how many there were."""

SHADES = 5

# Control characters, invisible and direction-changing format characters and tag characters: a name that holds them
# could reorder or hide what stands beside it.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\U000e0000-\U000e007f]"
)


def page(results: Results, receipt: Receipt | None) -> bytes:
    """UTF-8 HTML without script, network or clock: the same bytes for the same two inputs.

    Figures are rounded as results.json rounds them, so that a page made before the file was written and one made
    from it do not differ. Text from documents, queries and labels is shown, never interpreted.
    """
    stored = rounded(results.model_dump())
    measured = None if receipt is None else inert(rounded(receipt.model_dump()))
    return rendered(
        "results.html.j2",
        results=inert(stored),
        receipt=measured,
        embedded=embedded(measured["backends"] if measured else {}, inert(results.plan.baseline)),
        results_sha256=sha256(json_bytes(stored)),
        plan_lines=yaml.safe_dump(inert(stored["plan"]), sort_keys=False, allow_unicode=True, width=1000).splitlines(),
        commands=inert(_commands(results)),
        double_command=inert(f"{DRIVER} labels double --source={shlex.quote(results.source)}"),
        judges_say=inert(_judges_say(stored["judging"])),
        template_version=TEMPLATE_VERSION,
    )


def rendered(template: str, **values: JSON) -> bytes:
    """A page as UTF-8: the template of that name with `values`, and with the digest of the one style it permits."""
    templates = _environment()
    style = templates.get_template("_style.css.j2").render().encode()
    digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
    return (templates.get_template(template).render(style_sha256=digest, **values) + "\n").encode()


@cache
def _environment() -> Environment:
    """The templates of every page, with the filters that they share."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "places": places,
        "ranked": ranked,
        "signed": signed,
        "percent": percent,
        "dollars": dollars,
        "figure": figure,
        "per_query": per_query,
        "shade": shade,
        "criterion_5": criterion_5,
        "confirmation": confirmation,
        "p_value": p_text,
        "scale_chart": chart,
        "whole_percent": whole_percent,
    }
    return made


def places(value: float, digits: int = 4) -> str:
    """A figure at fixed places with a true minus sign, which screen readers speak; never a negative zero."""
    text = f"{value:.{digits}f}"
    return text.replace("-", "\u2212" if float(text) else "")


def signed(value: float, digits: int = 4) -> str:
    """A difference with its sign as text; none where it rounds to zero."""
    text = places(value, digits)
    return f"+{text}" if float(f"{value:.{digits}f}") > 0 else text


def percent(share: float) -> str:
    """A share as per cent at two places; what would round to 0.00 but is not zero says so."""
    if 0 < share < 0.00005:
        return "<\u20090.01\u202f%"
    return f"{100 * share:.2f}\u202f%"


def dollars(value: float) -> str:
    """US dollars at two places; what would round to 0.00 but is not zero says so."""
    return "<\u20090.01" if 0 < value < 0.005 else places(value, 2)


def figure(value: JSON) -> str:
    """Any scalar of a JSON file as a reader expects it: grouped integers, six digits of a float, yes and no."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "\u2212")
    if isinstance(value, float):
        return f"{value:,.6g}".replace("-", "\u2212")
    return str(value) or "empty"


def per_query(value: int) -> str:
    """A per-query score, an integer of 1e-9, at two places."""
    return places(value / SCORE_UNIT, 2)


def shade(value: int) -> int:
    """The step of the tint behind a per-query score: 0 for the lowest fifth to SHADES - 1 for the highest."""
    return min(value * SHADES // SCORE_UNIT, SHADES - 1)


def ranked(rows: Iterable[JSON], cells: Iterable[Mapping[str, JSON]]) -> list[JSON]:
    """Rows with a `cell`, or names of cells, in the order of the ranking; those that are not in it come last."""
    places_of = {row["cell"]: place for place, row in enumerate(cells)}

    def place(row: JSON) -> int:
        return places_of.get(row if isinstance(row, str) else row["cell"], len(places_of))

    return sorted(rows, key=place)


def criterion_5(row: Mapping[str, JSON], rule: Mapping[str, float]) -> str:
    """Whether a cell meets criterion 5, in words, with what is missing where it does not."""
    if row["role"] == "baseline":
        return "is the baseline"
    if row["meets_criterion_5"]:
        return "yes"
    gain, recall = (round(row["differences"][measure]["mean"], 4) for measure in ("ndcg@10", "recall@10"))
    reasons = []
    if gain < rule["min_gain"]:
        reasons.append(f"gains less than {rule['min_gain']:g} nDCG@10")
    if recall < -rule["max_recall_loss"]:
        reasons.append(f"loses more than {rule['max_recall_loss']:g} Recall@10")
    return f"no: {' and '.join(reasons)}" if reasons else "no"


def confirmation(row: Mapping[str, JSON]) -> str:
    """Whether a cell is confirmed, in words, with what keeps it from being so."""
    if row["role"] == "baseline":
        return "is the baseline"
    if not row["meets_criterion_5"]:
        return "no candidate"
    return "yes" if row["confirmed"] else f"no: {'; '.join(row['short_of'])}"


def inert(value: JSON) -> JSON:
    """The same structure with every text, keys included, cut to LONGEST_TEXT and its unseen characters spelled out."""
    if isinstance(value, str):
        shown = value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}… ({len(value):,} characters in all)"
        return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", shown)
    if isinstance(value, dict):
        return {inert(key): inert(item) for key, item in value.items()}
    if isinstance(value, list):
        return [inert(item) for item in value]
    return value


def _judges_say(panel: Mapping[str, JSON] | None) -> list[str]:
    """One sentence a second judge on what its readings can show, from figures as they are stored."""
    if panel is None:
        return []
    agreement = Agreement.model_validate(panel["agreement"])
    return [f"{second.judge}: {can_say(agreement, second)}" for second in agreement.seconds]


def _commands(results: Results) -> list[str]:
    """Commands that make these results, check the record and compare the page; outside the record the first alone."""
    source = f"--source={shlex.quote(results.source)}"
    known = catalog.SOURCES.get(results.source)
    # An exploration does not say whose cells it was compared with; a baseline of a rehearsal gives it away.
    elsewhere = known is not None and results.plan.baseline != known.baseline
    rehearse = " --rehearse" if results.kind == "rehearsal" or (results.kind == "exploration" and elsewhere) else ""
    run = f"{DRIVER} {source}{rehearse}"
    if results.kind == "exploration":
        cells = [row.cell for row in results.cells if row.role != "baseline"]
        return [" \\\n    ".join([run, *(f"--cells {shlex.quote(cell)}" for cell in cells)])]
    if results.collection is not None:
        place = "--eval-set-path FOLDER"
        imported = "".join(" --trec-run FILE" for row in results.cells if row.provenance.imported)
        return [
            f"{run} --corpus-path {shlex.quote(results.collection.name)} {place}{imported}",
            f"{DRIVER} render {source} {place} --check",
        ]
    if results.provisional:
        return [run]
    return [run, f"{DRIVER} verify {source}", f"{DRIVER} render {source}{rehearse} --check"]
