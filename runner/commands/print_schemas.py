"""The JSON Schema blocks of docs/eval-architecture.md, written anew: `python -m runner.commands.print_schemas`."""

import argparse
import json
import re
import sys
from pathlib import Path

from runner.base.canonical import JSON, write_atomic
from runner.base.schema import Strict
from runner.eval_set.shapes.cell import CellFile
from runner.eval_set.shapes.corpus import CollectionFile, CorpusHeader, CorpusRow
from runner.eval_set.shapes.decision import Decision, Lock, Receipt
from runner.eval_set.shapes.labels import Answer, Label
from runner.eval_set.shapes.plan import Plan, Preregistration
from runner.eval_set.shapes.queries import Queries
from runner.eval_set.shapes.results import Results
from runner.eval_set.shapes.versions import Abandoned, Opened
from runner.substrate.shapes import PostBulk

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "eval-architecture.md"
WIDTH = 118

SCHEMAS: dict[str, type[Strict]] = {
    "plan.yaml": Plan,
    "preregistration.json": Preregistration,
    "queries.yaml": Queries,
    "corpus.jsonl, first row": CorpusHeader,
    "corpus.jsonl, further rows": CorpusRow,
    "collection.json": CollectionFile,
    "labels.jsonl, each row": Label,
    "answer file, each row": Answer,
    "cells/<cell>.json": CellFile,
    "results.json": Results,
    "receipt.json": Receipt,
    "decision.json": Decision,
    "opened.json": Opened,
    "abandoned.json": Abandoned,
    "lock.json": Lock,
    "post_bulk.json": PostBulk,
}
"""Every file of an eval set by the name that the document gives it, in its order."""

_BLOCK = re.compile(r"(<!-- schema: (?P<name>[^\n]+?) -->\n).*?(<!-- end of schema -->)", re.DOTALL)


def with_schemas(text: str) -> str:
    """The text with the block between every pair of markers replaced by the schema that the marker names.

    KeyError for a marker that names no schema.
    """
    return _BLOCK.sub(lambda block: f"{block[1]}```json\n{_laid_out(_schema(block['name']))}\n```\n{block[3]}", text)


def _schema(name: str) -> JSON:
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **_untitled(SCHEMAS[name].model_json_schema())}


def _untitled(value: JSON) -> JSON:
    """The schema without generated titles, which repeat the names; a property may itself be called title."""
    if isinstance(value, dict):
        return {key: _untitled(item) for key, item in value.items() if key != "title" or not isinstance(item, str)}
    return [_untitled(item) for item in value] if isinstance(value, list) else value


def _laid_out(value: JSON, indent: int = 0) -> str:
    """JSON with everything on one line that fits there."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) + indent <= WIDTH or not isinstance(value, dict):
        return flat
    rows = [f"{' ' * (indent + 1)}{json.dumps(key)}: {_laid_out(item, indent + 1)}" for key, item in value.items()]
    return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"


def main() -> int:
    """0; the document is rewritten where a block is not current."""
    argparse.ArgumentParser(description=__doc__, allow_abbrev=False).parse_args()
    before = DOCUMENT.read_text(encoding="utf-8")
    after = with_schemas(before)
    if after != before:
        write_atomic(DOCUMENT, after.encode())
    sys.stdout.write(f"{DOCUMENT}: {'rewritten' if after != before else 'current'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
