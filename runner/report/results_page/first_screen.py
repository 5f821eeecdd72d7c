"""The first screen: what was decided, the plain table of results, what there is to doubt, and what to do next."""

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from runner.base.figures import fitting, places, whole_percent
from runner.base.places import COMMAND
from runner.base.records import ASKED
from runner.decide.decide import AUTOMATIC, UNATTENDED
from runner.decide.tiers import interval_of, stand
from runner.eval_set import catalog
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.judges import Judging
from runner.eval_set.shapes.results import CellResult, Results
from runner.report import sentences
from runner.report.chart import Axis, Whisker, axis_over
from runner.report.results_page.challenger import MINUS, Challenger, challenger, tested, told

MOST_DOUBTS = 5

LIKELY = 0.75
"""A choice that fewer draws of queries and grades make than this is a doubt."""

UNREAD = 0.1
"""A difference in what two encoders read of their tokens that outweighs every other doubt."""

PILLS = {
    "confirmed": "confirmed",
    "candidate": "candidate, not confirmed",
    "inconclusive": "inconclusive",
    "baseline kept": "no candidate",
    "no decision": "no decision",
    "compared": "compared, nothing decided",
}


class TableRow(NamedTuple):
    """A cell of the results table; `gain` and `place` are those of a difference, None for the baseline.

    `look` is "base", "win" or "".
    """

    cell: str
    model: str
    chunker: str
    ndcg: str
    gain: str
    ends: Sequence[str]
    place: Whisker | None
    recall: str
    mrr: str
    word: str
    look: str


class Doubt(NamedTuple):
    """A reason to trust the result less: the link's words and where it leads, and the words after it."""

    anchor: str
    link: str
    rest: str


class FirstScreen(NamedTuple):
    """What stands above everything else; `command` is "" if there is none to copy."""

    headline: str
    pill: str
    lead: str
    status: str
    rows: Sequence[TableRow]
    axis: Axis
    doubts: Sequence[Doubt]
    to_do: str
    command: str


def first_screen(results: Results, decision: Decision | None) -> FirstScreen:
    """The first screen of any kind of results; `decision` is that of their record."""
    one = challenger(results)
    ones = tested(results)
    ends = [end for each in ones for end in (*interval_of(each.test), each.gain)]
    axis = axis_over(ends, include=(0.0,))
    pill = "provisional" if results.provisional else PILLS[results.outcome.tier]
    to_do, command = _to_do(results, decision, one)
    return FirstScreen(
        headline=_headline(results, decision),
        pill=pill,
        lead=_lead(results, decision, one),
        status=_status(results, decision),
        rows=[_row(row, results, decision, one, axis) for row in results.cells],
        axis=axis,
        doubts=_doubts(results, one)[:MOST_DOUBTS],
        to_do=to_do,
        command=command,
    )


def short(cell: str, results: Results) -> str:
    """The chunker alone if every cell that a sentence may compare it with has the baseline's model, else the cell."""
    one = challenger(results)
    named = {name.partition(" x ")[0] for name in (cell, results.plan.baseline, *([one.cell] if one else []))}
    return cell.partition(" x ")[2] if len(named) == 1 else cell


def _headline(results: Results, decision: Decision | None) -> str:
    if results.kind == "external":
        return f"{results.cells[0].cell.partition(' x ')[0]} leads."
    if results.kind == "exploration":
        return "An exploration: nothing is decided."
    if results.provisional:
        return f"Not judged yet: {results.labels.unjudged_pairs:,} of {results.labels.pool_pairs:,} pairs."
    if results.outcome.tier == "no decision":
        return "Nothing can be decided from these figures."
    if decision is None:
        return "Not decided yet."
    chosen, kept = short(decision.chosen.cell, results), decision.chosen.cell == decision.baseline
    if results.kind == "rehearsal":
        return f"A rehearsal: it would {'keep' if kept else 'switch to'} {chosen}."
    return f"{'Keep' if kept else 'Switch to'} {chosen}."


def _lead(results: Results, decision: Decision | None, one: Challenger | None) -> str:
    if results.outcome.tier == "no decision" and not results.provisional:
        return sentences.found(results)
    parts = [_comparison(results, one)] if one else ["No cell stands beside the baseline."]
    if results.provisional:
        parts.append("An unjudged document counts as not relevant, so every figure may still move.")
    elif results.kind == "external":
        own = results.collection is not None and results.collection.judged_by
        judged = f"Judged by {own}; nothing is decided." if own else ""
        parts.append(judged or "Published judgments; nothing is decided about any source.")
    else:
        parts += ["It never counts for production."] if results.kind == "rehearsal" else []
        parts += [_choice(decision)] if decision is not None else []
    return " ".join(parts)


def _choice(decision: Decision) -> str:
    """Return who decided, when and why, in a sentence."""
    if decision.decided_by == AUTOMATIC:
        return f"Decided {decision.decided_on} by the rule: no cell is a candidate, so the baseline is kept."
    by = ", unattended" if decision.decided_by == UNATTENDED else f" by {decision.decided_by}"
    return f"Decided {decision.decided_on}{by}: {decision.reason.rstrip('.')}."


def _comparison(results: Results, one: Challenger) -> str:
    """What the cell beside the baseline scored, and whether that could be chance."""
    name, gain = short(one.cell, results), one.gain[0]
    size = gain.lstrip(f"+{MINUS}")
    how = "as high as" if gain == size else f"{size} {'lower' if gain[0] == MINUS else 'higher'} than"
    base = (
        results.plan.baseline if results.kind == "external" else f"the baseline {short(results.plan.baseline, results)}"
    )
    scored = f"{name} scored {how} {base} (interval {one.gain[1]} to {one.gain[2]})"
    if results.kind == "external":
        row = next(row for row in results.cells if row.cell == one.cell)
        says = {"not told apart": "not told apart", "above": "above it beyond chance", "below": "below beyond chance"}
        return f"{scored}: {says[stand(row) or 'not told apart']}."
    if one.could_be_chance is None:
        return f"{scored}: not preregistered, so not tested."
    if gain[0] == MINUS or gain == size:
        return f"{scored}."
    chance = "not shown to be more than chance" if one.could_be_chance else "unlikely to be chance"
    held_back = _held_back(results, one)
    return f"{scored}: {chance} (p = {one.p}{'' if held_back else ', all cells compared'}).{held_back}"


def _held_back(results: Results, one: Challenger) -> str:
    """A sentence on the challengers that the plan tests before this one and that are not shown to gain; "" if none."""
    ps = {row.row.cell: row.test.p_gain for row in tested(results)}
    alpha = results.plan.significance.alpha
    first = [short(cell, results) for cell in results.plan.first if (p := ps.get(cell)) is not None and p > alpha]
    if not (one.could_be_chance and one.p_alone and first) or one.cell in results.plan.first:
        return ""
    are = "which is not shown to gain and so holds it back" if len(first) == 1 else "which hold it back"
    return f" The plan tests {' and '.join(first)} first, {are}; among the cells after it p = {one.p_alone}."


def _status(results: Results, decision: Decision | None) -> str:
    size = f"{len(results.queries):,} queries · {results.corpus.documents:,} documents"
    if results.collection is not None:
        return size
    if decision is None:
        return f"{size} · not decided"
    return f"{size} · decided {decision.decided_on}"


def _row(row: CellResult, results: Results, decision: Decision | None, one: Challenger | None, axis: Axis) -> TableRow:
    model, _, chunker = row.cell.partition(" x ")
    shown = [fitting(each.mean, each.low, each.high) for each in (row.scores[name] for name in MEASURES)]
    found = TableRow(row.cell, model, chunker, shown[0], "", (), None, shown[1], shown[2], "", "")
    if row.test is None:
        return found._replace(word=_word(row, decision), look="base")
    gain, (low, high) = row.differences["ndcg@10"].mean, interval_of(row.test)
    texts = [told(each, results.plan.rule.min_gain, low, high) for each in (gain, low, high)]
    return found._replace(
        gain=texts[0],
        ends=texts[1:],
        place=axis.whisker(gain, low, high),
        word=_word(row, decision),
        look="win" if one and row.cell == one.cell else "",
    )


MEASURES = ("ndcg@10", "recall@10", "mrr")


def _word(row: CellResult, decision: Decision | None) -> str:
    """The verdict on a cell in a word or two, "" for one that is told neither way."""
    chosen = decision is not None and row.cell == decision.chosen.cell
    if row.test is None:
        return "baseline, kept" if chosen else "baseline"
    if chosen:
        return "chosen"
    if row.gate.verdict != "pass":
        return "null gate not passed"
    if row.confirmed:
        return "confirmed"
    if row.meets_criterion_5:
        return "candidate"
    return {"below": "worse", "above": "better"}.get(stand(row) or "", "")


def _doubts(results: Results, one: Challenger | None) -> list[Doubt]:
    """What this run leaves in doubt, worst first."""
    found: list[Doubt] = []
    n, said = len(results.queries), results.outcome
    compared = next((each for each in tested(results) if one and each.row.cell == one.cell), None)
    base = next((row for row in results.cells if row.test is None), None)
    if any(not control.behaves for control in results.controls) or (base and base.gate.verdict != "pass"):
        found.append(Doubt("trust", "The baseline or a control fails the null gate", ", so nothing can be measured."))
    known = catalog.SOURCES.get(results.source)
    if known is not None and known.weakness:
        what, comma, rest = known.weakness.partition(":")[0].partition(",")
        found.append(Doubt("limits", what, f"{comma}{rest}."))
    for other in results.judging.seconds if results.judging else []:
        if other.recommended != said.recommended:
            found.append(Doubt("judges", f"Another judge, {other.judge},", f" would choose {other.recommended}."))
    unread = _unread(base, compared.row if compared else None, results)
    if unread and unread[0] >= UNREAD:
        found.append(unread[1])
    if compared and compared.gain > 0 and len(results.cells) > 2:
        found.append(Doubt("why", f"Best of {len(results.cells) - 1} cells", ": picking it flatters its gain."))
    if results.judging:
        found += _judging_doubts(results.judging, len(results.labels.judges))
    if said.detectable is not None and said.detectable > results.plan.rule.min_gain:
        which = "a cell that is not tested first" if one and one.cell not in results.plan.first else "a cell"
        rest = f" are few: {which} must truly gain {places(said.detectable, 2)} to be confirmed four times in five."
        found.append(Doubt("queries", f"{n} queries", rest))
    if compared and compared.bound.state == "open" and compared.bound.low < 0:
        lost = f" could fall by up to {places(-compared.bound.low, 2)} in {short(compared.row.cell, results)}."
        found.append(Doubt("why", "Recall@10", lost))
    if unread and unread[0] < UNREAD:
        found.append(unread[1])
    written = sum(query.origin not in ASKED for query in results.queries)
    if written and results.kind != "external":
        found.append(Doubt("limits", f"{written} of {n} queries", " were written for this evaluation, not asked."))
    return found


def _judging_doubts(judging: Judging, n_judges: int) -> list[Doubt]:
    """What nobody checked of the grades, and how seldom the choice survives a second reader's errors."""
    found = []
    if not judging.read_twice:
        who = "One judge" if n_judges == 1 else f"{n_judges} judges, no pair read twice"
        found.append(Doubt("judges", who, ", checked by nobody." if n_judges == 1 else "."))
    elif all(one.readers != "people" for one in judging.seconds):
        is_one = all(one.readers == "one model" for one in judging.seconds)
        who = "One language model gave every grade" if is_one else "Language models gave every grade"
        found.append(Doubt("judges", who, ", the second readings too." if is_one else "; no person read a pair."))
    if judging.noise is not None and judging.noise.stability is not None and judging.noise.stability < LIKELY:
        share = whole_percent(judging.noise.stability).replace(" %", "\u202f%")
        found.append(Doubt("judges", f"Only {share} of draws", " of queries and grades lead to the same choice."))
    return found


def _unread(base: CellResult | None, row: CellResult | None, results: Results) -> tuple[float, Doubt] | None:
    """What the encoders of both never read, with the difference between them; None if next to nothing."""
    shares = [one.provenance.truncation.share if one and one.provenance.truncation else None for one in (base, row)]
    known = [share for share in shares if share is not None]
    if not known or max(known) < 0.01:
        return None
    names = ["the baseline's", f"{short(row.cell, results)}'s" if row else ""]
    texts = [whole_percent(share).replace(" %", "\u202f%") if share is not None else "" for share in shares]
    sides = [(share, text, name) for share, text, name in zip(shares, texts, names, strict=True) if share is not None]
    (worst, most, whose), *others = sorted(sides, key=lambda side: -side[0])
    gap = worst - (others[0][0] if others else 0.0)
    rest = f"; of {others[0][2]}, {others[0][1]}." if others else "."
    if gap >= UNREAD and row is not None and whose == names[0] and row.differences["ndcg@10"].mean > 0:
        rest += " The gain may be that alone."
    return gap, Doubt("chunks", f"{most} of {whose} tokens are never embedded", rest)


def _to_do(results: Results, decision: Decision | None, one: Challenger | None) -> tuple[str, str]:
    """What to do next, and the command for it."""
    source = f"{shlex.quote(results.source)}{' --rehearse' if results.kind == 'rehearsal' else ''}"
    said = results.outcome
    if results.kind == "exploration":
        return EXPLORED, new_version(results, COMMAND)
    if results.kind == "external":
        return sentences.next_step(results), ""
    if results.provisional:
        return "Have the remaining pairs judged, then repeat the command that made this page.", ""
    if said.tier == "no decision":
        return sentences.next_step(results), ""
    if decision is None:
        return (
            "Read this page, then choose a cell and say why.",
            f"{COMMAND} choose {source} {shlex.quote(said.recommended)} --reason WHY --by NAME",
        )
    if results.kind == "rehearsal":
        ask = f"{COMMAND} doctor {shlex.quote(results.source)}"
        return "A rehearsal decides nothing. Run the production plan; doctor says what it still needs.", ask
    command = f"{COMMAND} version {source}" if said.tier in ("candidate", "inconclusive") else ""
    return sentences.next_step(results), command


EXPLORED = "An exploration decides nothing. To test a cell, name it in the plan of a new version."


def new_version(results: Results, program: str, flags: str = "") -> str:
    """Return the command that opens the next version; `flags` name the newest one."""
    return f"{program} version {flags or shlex.quote(results.source)}"
