"""`make bench`: every benchmark of this folder, one process each, its ratio against a named peer printed."""

import subprocess
import sys
from pathlib import Path

NOT_BENCHMARKS = {
    "run.py",
    "corpus.py",
    "measuring.py",
    "sizes.py",
    "no_op_encoder.py",
    "simulate_decision.py",
    "simulate_judges.py",
    "simulate_pooled.py",
}


def main() -> int:
    """0 when every benchmark ran to its end; a benchmark's figures are for reading, not for passing."""
    failed = []
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.name in NOT_BENCHMARKS:
            continue
        print(f"== {path.name}", flush=True)
        if subprocess.run([sys.executable, str(path)], check=False).returncode:
            failed.append(path.name)
    if failed:
        print(f"did not run to the end: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
