"""`init`, `run`, `choose` and `explore`: verbs that move an evaluation; each imports what it moves."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, get_args

from runner.base.canonical import today
from runner.base.errors import InputError, InputNeeded, NegativeVerdict
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.records import parse_cell
from runner.base.schema import checked
from runner.commands.console import answer, answer_json
from runner.commands.flags import (
    again,
    backend_of,
    check_models,
    check_signature,
    collection_of,
    judge_of,
    refuse_external,
    version_of,
)
from runner.eval_set import catalog
from runner.eval_set.catalog import SourceSpec
from runner.eval_set.plan import check_cell, encoder_cells
from runner.eval_set.shapes.plan import FieldOf, Sample
from runner.eval_set.version import Version, is_record
from runner.evening.session import Session
from runner.evening.trial import tried
from runner.report.summary import run_json, run_summary

BASELINE = "baseline"


def init(options: argparse.Namespace) -> None:
    """Write plans and judge's instructions, draw the sample where documents are given, and say what comes next."""
    from runner.evening.evening import Evening
    from runner.evening.status import next_step

    begun_as = None
    if options.documents is not None:
        if options.source or options.corpus_path or options.live:
            raise InputError("--documents are documents of your own; leave out SOURCE, --corpus-path and --live.")
        begun_as = _own_source(options)
        options.source, options.corpus_path = begun_as.name, options.documents
    elif options.name or options.field:
        raise InputError("--name and --field belong to --documents.")
    elif not options.source:
        raise InputError("Which SOURCE? Name one (`sources` lists them), or give your own: --documents FOLDER.")
    refuse_external(options)
    version = _begun(version_of(options, begins=True, begun_as=begun_as), begun_as, options)
    if options.encoder:
        version = _with_encoders(version, options.encoder)
    Evening(version, options.corpus_path, live=options.live).begin()
    answer(str(next_step(version, "begun")))


def _own_source(options: argparse.Namespace) -> SourceSpec:
    """Return the source of one's own that the flags name; the name is by default that of folder or file."""
    name = options.name or re.sub(r"\W+", "_", options.documents.resolve().stem.casefold(), flags=re.ASCII).strip("_")
    fields = {}
    for given in options.field:
        known, equals, field = given.partition("=")
        if known not in get_args(FieldOf) or not equals:
            raise InputError(f"--field {given!r}: write NAME=FIELD, NAME one of {', '.join(get_args(FieldOf))}.")
        fields[known] = field
    checked(Sample, {"size": 1, "seed": 0, "documents": fields}, "--field")
    return catalog.own_source(name, fields)


def _begun(version: Version, begun_as: SourceSpec | None, options: argparse.Namespace) -> Version:
    """Return the version with what the flags say of its source; InputError if its plan says otherwise already."""
    size, source, path = options.size, version.source, version.plan_path(rehearsal=False)
    if is_record(version.folder.parent) and (begun_as or options.baseline):
        raise InputError(
            f"{version.folder.parent} is of the record, which has the roster's sources and baselines alone. Begin in a "
            "folder of your own: --eval-set-path FOLDER."
        )
    if options.baseline:
        check_cell(parse_cell(options.baseline))
    if size is not None and size < 1:
        raise InputError("--size 0: a sample has 1 document or more.")
    if path.exists():
        plan = version.plan(rehearsal=False)
        wanted = (
            ("--size", size, plan.sample.size),
            ("--baseline", options.baseline, plan.baseline),
            ("--field", _listed(dict(begun_as.fields or ())) if begun_as else None, _listed(plan.sample.documents)),
        )
        for flag, asked, planned in wanted:
            if asked and asked != planned:
                raise InputError(f"{flag} {asked}: {path} has {planned or 'none'}. {_to_change(version, flag)}")
    sample_size, baseline = size or source.sample_size, options.baseline or source.baseline
    return replace(version, source=replace(source, sample_size=sample_size, baseline=baseline))


def _to_change(version: Version, flag: str) -> str:
    """Return how what a flag says can still be changed in the version's plan."""
    if version.preregistration_path.exists():
        return f"That is frozen. Open a new version and change it there: {DRIVER} version {version.flags}"
    if flag != "--baseline" and version.corpus_path.exists():
        return (
            f"Its documents are drawn by that already. Change it there, delete {version.corpus_path}, and run this "
            "command again to draw others."
        )
    return "Change it there, and run this command again."


def _listed(fields: Mapping[Any, str] | None) -> str:
    return " ".join(f"{name}={field}" for name, field in (fields or {}).items())


def _with_encoders(version: Version, names: Sequence[str]) -> Version:
    """Return the version whose plan, once written, compares these encoders too; InputError if it has another plan."""
    path = version.plan_path(rehearsal=False)
    for name in names:
        catalog.encoder(name)
    source = replace(version.source, encoders=tuple(names))
    wanted = [cell for name in names for cell in encoder_cells(name, source.baseline, source.structural_chunker)]
    if path.exists() and not set(wanted) <= set(version.plan(rehearsal=False).cells):
        listed = "".join(f'\n  - "{cell}"' for cell in wanted)
        raise InputError(f"--encoder: {path} is written already. Add to its cells, before pairs are judged:{listed}")
    return replace(version, source=source)


def run(options: argparse.Namespace) -> None:
    """Move the evening up to what a person must do; of a public collection, make its comparison."""
    check_models(options)
    if options.live and options.corpus_path:
        raise InputError("--live fetches documents for a new version; it goes without --corpus-path.")
    if catalog.is_external(options.source):
        return _compare(options)
    if options.trec_run:
        raise InputError("--trec-run belongs to an external collection, such as beir.")
    return _evening(options, again("run", options))


def choose(options: argparse.Namespace) -> None:
    """Move the evening to its end, which then needs no choice: the cell is recorded and locked."""
    from runner.decide.decide import RECOMMENDED

    check_models(options)
    refuse_external(options)
    check_signature(options)
    if get_close_matches(options.cell, [RECOMMENDED], cutoff=0.8) and options.cell != RECOMMENDED:
        raise InputError(f"{options.cell!r} is no cell; did you mean {RECOMMENDED!r}?")
    if options.cell == BASELINE and options.source in catalog.SOURCES:
        version = version_of(options, begins=True)
        if version.source.policy == "baseline" and not version.preregistration_path.exists():
            return _adopt(version, options)
    if options.cell != RECOMMENDED and not (options.reason.strip() and options.by.strip()):
        raise InputError("choose needs --reason TEXT and --by NAME: decision.json names who decided, and why.")
    return _evening(options, again("run", options, but=options.cell), chooses=True)


def _adopt(version: Version, options: argparse.Namespace) -> None:
    """Record the baseline of a source with weak structure by policy, unevaluated, and lock it."""
    from runner.decide.decide import decision_sentence
    from runner.decide.policy import adopt_baseline

    if not options.by.strip():
        raise InputError("--by NAME is needed: decision.json names who decided.")
    decision, is_new = adopt_baseline(version, options.by, options.reason, today=today())
    say(f"locked. To commit, as it is: {version.folder}" if is_new else "recorded before; nothing is changed")
    answer(decision_sentence(decision))


def explore(options: argparse.Namespace) -> None:
    """Score cells of the operator's choice on the frozen set, beside the baseline."""
    from runner.evening.exploration import Exploration

    check_models(options)
    refuse_external(options)
    version = _version(options)
    with backend_of(options, version, version.work) as backend:
        corpus, command = options.corpus_path, again("explore", options)
        _answer(Exploration(version, corpus, None, command, backend, cells=options.cells), options)


def _evening(options: argparse.Namespace, command: str, *, chooses: bool = False) -> None:
    from runner.decide.decide import UNATTENDED, Choice
    from runner.evening.evening import Evening

    version = _version(options)
    choice = None
    if chooses:
        cell = version.plan().baseline if options.cell == BASELINE else options.cell
        choice = Choice(cell, options.reason, options.by or UNATTENDED)
    # A choice moves nothing that is paid for: its grades are all there, or it stops.
    live, judge = getattr(options, "live", False), None if chooses else judge_of(options)
    with backend_of(options, version, version.work) as backend:
        _answer(Evening(version, options.corpus_path, choice, command, backend, judge, live=live), options)


def _version(options: argparse.Namespace) -> Version:
    """Return the version that is meant; documents may begin it. With --try, the one in a folder of its own."""
    version = version_of(options, begins=options.corpus_path is not None or getattr(options, "live", False))
    return version if version.tried_from is None else tried(version.tried_from)


def _compare(options: argparse.Namespace) -> None:
    """Compare a public collection with published judgments; nothing of it is decided."""
    from runner.evening.external import ExternalEvaluation

    for name, given in (("--rehearse", options.rehearse), ("--live", options.live), ("--try", options.trial)):
        if given:
            raise InputError(
                f"{name}: an external collection is compared and never decided; its cells are in plan.yaml."
            )
    version = collection_of(options)
    with backend_of(options, version, version.work) as backend:
        _answer(ExternalEvaluation(version, options.corpus_path, backend=backend, trec_runs=options.trec_run), options)


def _answer(session: Session, options: argparse.Namespace) -> None:
    """Print the answer; the table of what was scored comes before it, and before what is raised.

    As JSON, verdicts and what is outstanding are printed before they are raised.
    """
    # Both are answers, not failures: what was scored is printed with them.
    outcome: NegativeVerdict | InputNeeded | None = None
    said = ""
    try:
        said = session.run()
    except (NegativeVerdict, InputNeeded) as stopped:
        outcome = stopped
    if options.json:
        code = outcome.exit_code if outcome else 0
        answer_json(run_json(session.version, session.scored, code, str(outcome) if outcome else said))
    elif session.scored is not None and not session.scored[0].provisional:
        results = session.scored[0]
        decided = outcome is None and results.kind not in ("exploration", "external")
        is_said = isinstance(outcome, NegativeVerdict)
        answer(f"{run_summary(results, flags=session.version.origin.flags, is_said=is_said, decided=decided)}\n")
    if outcome is not None:
        if isinstance(outcome, InputNeeded):
            outcome.printed = options.json
        raise outcome
    if not options.json:
        answer(said)
