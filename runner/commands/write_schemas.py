"""Write the JSON Schema of every file of an eval set to docs/schemas/: `python -m runner.commands.write_schemas`."""

import argparse
import json
import sys

from pydantic.json_schema import GenerateJsonSchema

from runner.base.canonical import write_atomic
from runner.base.places import CHECKOUT
from runner.base.schema import FrozenModel
from runner.eval_set.shapes.cell import CellFile
from runner.eval_set.shapes.corpus import CollectionFile, CorpusHeader, CorpusRow
from runner.eval_set.shapes.decision import Decision, Receipt
from runner.eval_set.shapes.labels import Answer, Label
from runner.eval_set.shapes.lists import RankedLists
from runner.eval_set.shapes.lock import Lock
from runner.eval_set.shapes.plan import Plan, Preregistration
from runner.eval_set.shapes.queries import Queries
from runner.eval_set.shapes.results import Results
from runner.eval_set.shapes.versions import Abandoned, Opened
from runner.substrate.shapes import PostBulk

FOLDER = CHECKOUT / "docs" / "schemas"

SCHEMAS: dict[str, type[FrozenModel]] = {
    "plan": Plan,
    "preregistration": Preregistration,
    "queries": Queries,
    "corpus-header": CorpusHeader,
    "corpus-row": CorpusRow,
    "collection": CollectionFile,
    "label": Label,
    "answer": Answer,
    "cell": CellFile,
    "results": Results,
    "lists": RankedLists,
    "receipt": Receipt,
    "decision": Decision,
    "opened": Opened,
    "abandoned": Abandoned,
    "lock": Lock,
    "post_bulk": PostBulk,
}
"""The shape of each file by the stem of its schema's name, in the order of docs/eval-architecture.md."""


class _Untitled(GenerateJsonSchema):
    """Schemas whose fields have no titles: pydantic's repeat their names."""

    def field_title_should_be_set(self, schema: object) -> bool:
        """Return False, of any field."""
        return False


def schema_text(name: str) -> str:
    """Return the text of a schema's file."""
    schema = SCHEMAS[name].model_json_schema(schema_generator=_Untitled)
    dialect = {"$schema": GenerateJsonSchema.schema_dialect}
    return json.dumps({**dialect, **schema}, ensure_ascii=False, indent=2) + "\n"


def main() -> int:
    """Write every file that is not current, name it on stdout, and return 0."""
    argparse.ArgumentParser(description=__doc__, allow_abbrev=False).parse_args()
    for name in SCHEMAS:
        path, text = FOLDER / f"{name}.json", schema_text(name)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            write_atomic(path, text.encode())
            sys.stdout.write(f"{path}: written\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
