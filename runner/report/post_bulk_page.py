"""post-bulk.html: one self-contained page, a pure function of post_bulk.json, its receipt and the templates."""

import shlex

from runner.base.canonical import json_bytes, rounded, sha256
from runner.eval_set.shapes.decision import Receipt
from runner.eval_set.version import DRIVER
from runner.report.page_frame import inert, rendered
from runner.substrate.shapes import PostBulk
from runner.substrate.verdict import verdict

TEMPLATE_VERSION = 2
"""Raised with every change of a template or of this module that changes the page; the page names it."""


def post_bulk_page(found: PostBulk, receipt: Receipt) -> bytes:
    """UTF-8 HTML without script, network or clock; what substrate and record hold is shown, never interpreted."""
    stored = rounded(found.model_dump())
    return rendered(
        "post_bulk.html.j2",
        found=inert(stored),
        verdict=inert(verdict(found)),
        receipt=inert(rounded(receipt.model_dump())),
        found_sha256=sha256(json_bytes(stored)),
        commands=inert(_commands(found)),
        template_version=TEMPLATE_VERSION,
    )


def _commands(found: PostBulk) -> list[str]:
    source = f"--source={shlex.quote(found.source)}"
    rehearse = " --rehearse" if found.kind == "rehearsal" else ""
    return [
        f"{DRIVER} {source}{rehearse} --post-bulk --corpus-path SUBSTRATE.db",
        f"{DRIVER} verify {source}",
    ]
