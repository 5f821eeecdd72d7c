"""`make bench`: every benchmark of this folder, one process each, as one table of ratios against named peers."""

import subprocess
import sys
from pathlib import Path

from measuring import HEAD

NO_BENCHMARKS = ("run.py", "measuring.py", "worlds.py", "findings.py")


def benchmarks() -> list[Path]:
    """Return the files of this folder that print rows of the table."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return [path for path in files if path.name not in NO_BENCHMARKS and not path.name.startswith("simulate")]


def main() -> int:
    """Return 0 when every benchmark ran to its end; a benchmark's figures are for reading, not for passing."""
    failed = []
    print(HEAD, flush=True)
    for path in benchmarks():
        if subprocess.run([sys.executable, str(path)], check=False).returncode:
            failed.append(path.name)
    if failed:
        print(f"did not run to the end: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
