"""The actions of `collection`: a public collection from its publisher, or from files, into BEIR's layout."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runner.base.places import DRIVER, cache_folder
from runner.base.progress import say
from runner.commands.console import Parser, answer, command_parser, whole_number

if TYPE_CHECKING:
    from samplers.feeds.public_collections import Imported

_EPILOG = """\
docs/collections.md has the layouts. collection-source.json keeps where the files came from and their SHA-256.
exit codes: 0 done, 2 usage or input error, 5 server, network, disk or limit
"""


def fetch(arguments: Sequence[str]) -> int:
    """`collection fetch`: NAME of BEIR's archives, or OWNER/NAME of Hugging Face's datasets, into a new folder."""
    parser = _parser("collection fetch")
    add = parser.add_argument
    add("name", metavar="NAME", help="scifact (BEIR's archive), or mteb/scifact (a dataset of Hugging Face)")
    add("--revision", default="", metavar="COMMIT", help="of a dataset; default its newest, which is recorded")
    add("--max-mb", type=whole_number("a number of megabytes", 1), default=500, metavar="N", help="most to fetch, 500")
    add("--endpoint", action="append", default=[], metavar="NAME=URL", help="a mirror in place of a service")
    options = parser.parse_args(arguments)
    if options.revision and "/" not in options.name:
        parser.error("--revision is of a dataset of Hugging Face; BEIR's archives have none")
    from samplers.feeds.public_collections import FetchPlan, fetch_collection

    mirrors = dict(endpoint.partition("=")[::2] for endpoint in options.endpoint)
    plan = FetchPlan(options.revision, options.split, mirrors, options.max_mb)
    answer(_done(fetch_collection(options.name, options.to, plan, cache_folder(), say), options.to))
    return 0


def import_(arguments: Sequence[str]) -> int:
    """`collection import`: a folder or ZIP in Hugging Face's or BEIR's layout into a new folder."""
    parser = _parser("collection import")
    parser.add_argument("place", type=Path, metavar="PLACE", help="a folder or a ZIP")
    options = parser.parse_args(arguments)
    from samplers.feeds.public_collections import import_collection

    answer(_done(import_collection(options.place, options.to, options.split), options.to))
    return 0


def _parser(verb: str) -> Parser:
    parser = command_parser(verb, epilog=_EPILOG)
    parser.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="a new folder")
    parser.add_argument("--split", default="test", metavar="NAME", help="whose judgments; default test")
    return parser


def _done(imported: "Imported", to: Path) -> str:
    return (
        f"{to}: {imported.documents:,} documents, {imported.queries:,} queries, {imported.pairs:,} judged pairs, from "
        f"{imported.files} files\nNext: {DRIVER} run beir --corpus-path {to}"
    )
