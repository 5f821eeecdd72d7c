"""`view`, `verify`, `export`, `embed`, `post-bulk` and `version`: verbs over a version that exists."""

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from runner.base.canonical import today
from runner.base.errors import InputError, InputNeeded, IntegrityError
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.schema import part
from runner.commands.console import answer, open_page
from runner.commands.flags import backend_of, check_models, check_signature, version_of
from runner.commands.lock import verify_folder
from runner.eval_set.history import versions_of
from runner.eval_set.labels import label_prefix, load_labels
from runner.eval_set.lock import verify_version
from runner.eval_set.plan import read_plan
from runner.eval_set.shapes.labels import LabelPrefix
from runner.eval_set.version import Version, load_results


def view(options: argparse.Namespace) -> None:
    """Open the newest results page in a browser, from a terminal; its address goes to stdout in any case."""
    if options.output and not options.passages:
        raise InputError("--output is where --passages writes its copy; give both.")
    version = version_of(options)
    lock = verify_version(version)[version.rehearsal]
    if options.passages:
        from runner.report.local_copy import write_local_copy

        page = write_local_copy(version, options.output)
    else:
        page = newest_page(version)
        if page.parent == version.record and lock is not None and page.name not in lock.files:
            raise IntegrityError(f"{page} is not in the lock of {version.name}, so nobody scored it; move it away.")
        if lock is None and version.source.policy != "external" and not _is_current(version, page):
            say("cells, grades or results.json changed since this page was made; `run` makes it anew")
    open_page(page)


def newest_page(version: Version) -> Path:
    """Return the version's page, or a provisional one that was made since; InputNeeded if there is neither.

    A provisional page all of whose grades were taken back is none.
    """
    provisional = version.work / ("provisional-rehearsal" if version.rehearsal else "provisional") / "results.html"
    places = [version.record / "results.html", *([provisional] if load_labels(version.labels_path) else [])]
    pages = [path for path in places if path.exists()]
    if not pages:
        ways = [f"See what to do now: {DRIVER} next {version.viewed}"]
        if not version.rehearsal and (version.folder / "rehearsal" / "results.html").exists():
            ways.append(f"Or open the page of its rehearsal: {DRIVER} view {version.flags} --rehearse")
        raise InputNeeded(f"{version.name} has no results page yet.", ways)
    is_decided = (version.record / "decision.json").exists()
    return pages[0] if is_decided else max(pages, key=lambda page: page.stat().st_mtime)


def _is_current(version: Version, page: Path) -> bool:
    """Return whether the results beside a page are of the plan's cells and of the grades as they are now."""
    try:
        results = load_results(replace(version, apart=page.parent))
        cells = read_plan(version.plan_path(rehearsal=version.rehearsal)).cells
    except InputError:
        return False
    return results.plan.cells == cells and part(LabelPrefix, results.labels) == label_prefix(version.labels_path)


def verify(options: argparse.Namespace) -> int | None:
    """Hold every file of a locked version, or of any folder with --lock, against its lock."""
    if options.lock:
        if options.deep or options.eval_set_path:
            raise InputError("--deep and --eval-set-path are of a version; leave --lock out, or them.")
        return verify_folder(options)
    if options.json:
        raise InputError("--json belongs to --lock.")
    from runner.evening.remake import verify_record

    # Every version is held to its lock: one in force may stand before an open one.
    newest = version_of(options)
    for version in versions_of(newest) or [newest]:
        answer("\n".join(verify_record(version, deep=options.deep)))
    return None


def export(options: argparse.Namespace) -> None:
    """Write a version's results, queries and grades as tables, of the newest or of the version that --version names."""
    from runner.report.export import write_tables
    from runner.report.html_file import outside_records

    version = version_of(options)
    if options.version is not None:
        there = {each.number: each for each in versions_of(version)}
        if options.version not in there:
            named = ", ".join(map(str, there)) or "none yet"
            raise InputError(f"--version: {options.source} has no version {options.version}; there: {named}.")
        version = there[options.version]
    verify_version(version)
    # A table written into a record would be a stranger to its lock.
    outside_records(options.output, version.work, version.folder.parent)
    if not version.results_path.exists():
        raise InputError(f"{version.results_path} does not exist; `run` makes it. Or name another --version.")
    rows = write_tables(version, options.output)
    answer("\n".join(f"{display(path)}: {count:,} rows" for path, count in rows.items()))


def embed(options: argparse.Namespace) -> None:
    """Carry a locked decision out over a corpus, into an index; with --check hold an index to it."""
    from runner.decide.roster import version_in_force
    from runner.evening.embed import check_index, embed_source

    check_models(options)
    if options.check == bool(options.corpus_path) or (options.check and options.prune):
        raise InputError("Give --corpus-path, the documents to embed, or --check, which writes nothing.")
    newest = version_of(options)
    version = newest if newest.rehearsal else version_in_force(newest) or newest
    with backend_of(options, version, version.work / "embed") as backend:
        if options.check:
            answer(check_index(version, options.to, backend))
        else:
            answer(embed_source(version, options.corpus_path, options.to, backend, prune=options.prune))


def post_bulk(options: argparse.Namespace) -> None:
    """Hold a decided version's queries to the production database; NegativeVerdict names each fault."""
    from runner.decide.roster import version_in_force
    from runner.evening.post_bulk import post_bulk as check

    version = version_of(options)
    in_force = None if version.rehearsal else version_in_force(version)
    answer(check(in_force or version, options.corpus_path))


def version(options: argparse.Namespace) -> None:
    """Open the next version, with the files of the newest; with --abandon, give the newest up, which is undecided."""
    from runner.evening.next_version import abandon, open_next

    check_signature(options)
    if options.abandon + options.confirm + bool(options.encoder) > 1:
        raise InputError("--abandon, --confirm and --encoder go one at a time.")
    signed = {"reason": options.reason, "by": options.by, "today": today()}
    if options.all or options.yes:
        return _bump_all(options, partial(open_next, encoders=options.encoder, **signed))
    if not options.source:
        raise InputError("Which SOURCE? Name one; or --all, with --encoder NAME.")
    act = abandon if options.abandon else partial(open_next, confirm=options.confirm, encoders=options.encoder)
    answer(act(version_of(options), **signed))
    return None


def _bump_all(options: argparse.Namespace, open_one: Callable[[Version], str]) -> None:
    """Print what an encoder beside every decided source would leave to do and, with --yes, open those versions."""
    from runner.evening.bump import bumped_everywhere

    named = options.source or options.eval_set_path or options.rehearse
    if not (options.all and options.encoder) or named:
        raise InputError("--all goes with --encoder NAME, perhaps with --yes; not with SOURCE, a folder or --rehearse.")
    lines, versions = bumped_everywhere(options.encoder)
    answer("\n".join(lines))
    if not options.yes:
        say("nothing is written; --yes opens these versions")
    for version in versions if options.yes else ():
        answer(open_one(version))
