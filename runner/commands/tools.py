"""`try`, `compare`, `pooled`, `tripwire` and `mcp`: tools over files that a reader names."""

import argparse
import shlex
import sys
from dataclasses import asdict, replace

from runner.base.canonical import slug
from runner.base.errors import BackendError, InputError, InputNeeded, NegativeVerdict
from runner.base.places import DRIVER, WORKPLACE
from runner.commands.console import answer, open_page, tell


def try_(options: argparse.Namespace) -> None:
    """Rank six cells over a folder of the reader's own, and open the page of it."""
    from runner.report.html_file import write_html
    from runner.tools.try_folder import CELLS, try_folder

    work = WORKPLACE / ".work"
    tried = try_folder(options.folder, options.queries)
    page = write_html(options.output or work / f"try-{slug(tried.name)}.html", tried.found.page_with_passages(), work)
    begin = f"init --documents {shlex.quote(str(options.folder))} --name NAME --baseline {shlex.quote(CELLS[0])}"
    answer(f"{tried}\n  {DRIVER} {begin}\n")
    open_page(page)


def compare(options: argparse.Namespace) -> None:
    """Compare a run with published means and, paired, with another run."""
    from runner.tools.compare import compare as compared
    from runner.tools.compare import comparison_lines, read_baselines, read_scores

    if options.other_cell is not None and options.paired is None:
        raise InputError("--other-cell belongs to --paired FILE.")
    run = read_scores(options.run, options.cell)
    other = None if options.paired is None else read_scores(options.paired, options.other_cell)
    if options.baselines is not None:
        run = replace(run, baselines=read_baselines(options.baselines))
    comparison = compared(run, other, options.rng)
    tell(options, asdict(comparison), lambda: comparison_lines(comparison))


def pooled(options: argparse.Namespace) -> None:
    """Say what each kind of cell gains over all sources, and what each source's figures shrink to."""
    from runner.decide.locked_gains import checked_together, read_given
    from runner.decide.roster import newest_locked
    from runner.tools.pooled import pooled_lines, pooled_report

    paths = options.folders or newest_locked(rehearsal=options.rehearse)
    if options.rehearse:
        # A version's folder stands for its rehearsal, which lies in it.
        paths = [inner if (inner := path / "rehearsal").is_dir() else path for path in paths]
    if not paths:
        what = "rehearsal" if options.rehearse else "evaluation"
        raise InputNeeded(f"No source has a locked {what} yet, so there is nothing to pool. Finish an evening first.")
    given = checked_together([read_given(path) for path in paths])
    if options.rehearse != (given[0].kind == "rehearsal"):
        raise InputError(
            f"{given[0].path} is of kind {given[0].kind}. --rehearse pools rehearsals, and nothing else does."
        )
    report = pooled_report(given)
    tell(options, report, lambda: pooled_lines(report))


def tripwire(options: argparse.Namespace) -> int:
    """Hold golden queries to a committed snapshot, or write it; 1 if one fell."""
    from runner.tools import tripwire as stage

    k, limit, tolerance, path = options.k, options.limit, options.tolerance, options.snapshot
    golden = stage.load_golden(options.golden)
    report = stage.rankings_report(stage.read_rankings(options.run, golden, limit), golden, k=k, limit=limit)
    if options.action == "update":
        data, lines = stage.update_snapshot(report, path)
        tell(options, data, lambda: lines)
        return 0
    # A missing snapshot is no pass: the check would be green for ever.
    if not path.exists():
        raise InputError(f"{path} does not exist. `tripwire update` with the same arguments writes it.")
    snapshot = stage.load_snapshot(path)
    diff = stage.compare_to_snapshot(report, snapshot, tolerance)
    compared = {"ok": diff.ok, **diff._asdict(), "tolerance": tolerance, "report": report.model_dump()}
    tell(options, compared, lambda: stage.check_lines(report, diff, path, tolerance))
    return 0 if diff.ok else NegativeVerdict.exit_code


def mcp(options: argparse.Namespace) -> None:
    """Serve one client on standard input and output until it leaves."""
    try:
        from runner.tools.mcp.server import root_of, serve
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types"):
            raise
        raise BackendError(
            f"The package {error.name} is not installed for {sys.executable}. Run `make setup`, or "
            "pip install 'per-source-eval[mcp]'."
        ) from error
    serve(root_of(options.root))
