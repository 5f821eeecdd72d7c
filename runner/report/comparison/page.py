"""Two results side by side: one self-contained page, a pure function of both files, their decisions and the templates.

It is never part of a record: whoever asks writes it where work lies, or where they like.
"""

import shlex
from pathlib import Path

from runner.base.canonical import slug
from runner.eval_set.version import DRIVER, Version
from runner.report.comparison.asked import compared_results
from runner.report.comparison.bulk import compared_bulk
from runner.report.comparison.file import write_html
from runner.report.comparison.inputs import Pair, pair_of
from runner.report.comparison.view import moved_queries, pair_forest
from runner.report.page_frame import inert, rendered
from runner.score.score import COMPARED

TEMPLATE_VERSION = 1
"""Raised with every change of a template or of these modules that changes the page; the page names it."""

STYLES = ("_forest.css.j2", "_comparison.css.j2")

_HEADS = {"ndcg@10": "nDCG@10", "recall@10": "Recall@10", "mrr": "MRR"}


def comparison_page(pair: Pair) -> bytes:
    """UTF-8 HTML without script, network or clock: the same bytes for the same files; whatever they hold is inert."""
    if pair.bulk is not None:
        compared = compared_bulk(pair.now, pair.bulk, pair.bulk_sha256)
    else:
        assert pair.before is not None  # a pair has one or the other
        compared = compared_results(pair.before, pair.now)
    shown = inert(compared)
    return rendered(
        "comparison.html.j2",
        styles=STYLES,
        compared=shown,
        forest=pair_forest(shown),
        moved=moved_queries(shown),
        bulk=pair.bulk is not None,
        source=inert(pair.now.results.source),
        confidence=100 * pair.now.results.plan.bootstrap.confidence,
        alpha=pair.now.results.plan.significance.alpha,
        measures=[(name, _HEADS[name]) for name in COMPARED],
        verify=inert(f"{DRIVER} verify --source={shlex.quote(pair.now.results.source)}"),
        template_version=TEMPLATE_VERSION,
    )


def write_comparison(version: Version, against: str, output: Path | None) -> Path:
    """Where the page went: `output`, by default comparison-with-<what>.html in the version's work folder.

    Raises InputError for what is not there to compare and for a place in an eval set; IntegrityError where a record
    or a report is not as it was locked.
    """
    content = comparison_page(pair_of(version, against))
    path = output or version.work / f"comparison-with-{slug(_told(against))}.html"
    return write_html(path, content, version.work, version.folder.parent, version.checkout / "eval-sets")


def _told(against: str) -> str:
    """A name of WHAT for a file's name: of a path its last folder, since every file is called results.json."""
    path = Path(against)
    return path.resolve().parent.name if path.is_file() else against
