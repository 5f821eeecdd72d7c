"""`quickstart`: a sample bench to try `grade` on."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from runner.base.given_files import display
from runner.tools.console import answer, command_parser


def quickstart(arguments: Sequence[str]) -> int:
    """0; the files and the next command on stdout."""
    description = "Writes a bench of fifty queries (bench.jsonl) and its pool (pool.txt) into a folder."
    epilog = "exit codes: 0 written, 2 usage, or a file is there already, 5 the folder cannot be written"
    parser = command_parser("quickstart", description, epilog)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), metavar="DIR", help="by default this folder")
    folder = parser.parse_args(arguments).folder
    from runner.tools.grade.sample_bench import write_quickstart

    paths = write_quickstart(folder)
    bench, pool = (shlex.quote(str(path)) for path in paths)
    answer("\n".join(f"wrote {display(path)}" for path in paths))
    answer(f"next: bin/per-source-eval.py grade --input {bench} --metric ndcg@5 --pool {pool}")
    return 0
