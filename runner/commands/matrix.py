"""Write the page of public collections (our scores, published values, tests): `python -m runner.commands.matrix`.

DOCS/matrix/README.md is made from published.yaml and runs/ beside it. RESULTS, the results.json of external collections
(`run beir`), first write a run of each of their cells there, ids and figures alone.
"""

import argparse
import sys
from pathlib import Path

from runner.base.errors import EvalError
from runner.base.given_files import display
from runner.base.places import WORKPLACE
from runner.base.progress import say
from runner.commands.console import answer
from runner.tools.matrix import add_runs, write_matrix


def main(arguments: list[str]) -> int:
    """Write the page, or compare it with what it is made from, and return an exit code as of any verb."""
    parser = argparse.ArgumentParser(prog="python -m runner.commands.matrix", description=__doc__, allow_abbrev=False)
    parser.add_argument("results", nargs="*", type=Path, metavar="RESULTS", help="results.json files, to be added")
    parser.add_argument("--docs", type=Path, default=WORKPLACE / "docs", metavar="DOCS", help="default: docs")
    parser.add_argument("--check", action="store_true", help="compare with the page that is there; write nothing")
    options = parser.parse_args(arguments)
    page: Path = options.docs / "matrix" / "README.md"
    try:
        for path in add_runs(options.results, options.docs / "matrix" / "runs") if options.results else ():
            answer(f"wrote {display(path)}")
        write_matrix(page, check=options.check)
    except EvalError as error:
        say(str(error))
        return error.exit_code
    answer(f"{display(page)} {'is reproduced byte for byte' if options.check else 'is written'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
