"""python -m tests.soak [--seed N] [--minutes N] [--only KIND]

Runs trials until every count is reached or the minutes are over, and prints a table; started again, it goes on.
One line a trial stands in .work/soak/SEED/trials.jsonl. Exit 1 if a trial found something.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from runner.base.places import CHECKOUT
from samplers.registry import READERS
from tests.soak import Kind, Trial, faults, files, indexes, kills

KINDS: dict[str, tuple[Kind, int, int]] = {
    "kills": (kills.trials, 475, 10),
    "flips": (files.flips, 2_000, 200),
    "faults": (faults.trials, 500, 25),
    "index kills": (indexes.kills, 60, 5),
    "index disks": (indexes.full_disks, 20, 5),
    **{f"mutations of {source}": (files.mutations(source), 5_000, 250) for source in READERS},
}
"""How each kind runs, the count that a soak ends at, and how many trials share a process."""

LONGEST = 900
"""Seconds after which a process of trials is ended, and its next trial counts as hung."""


def main() -> int:
    """1 if any trial found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.splitlines()[2])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--only", default="", help="kinds whose name begins so")
    parser.add_argument("--slice", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    work = CHECKOUT / ".work" / "soak" / str(given.seed)
    if given.slice:
        kind, *numbers = given.slice
        for trial in KINDS[kind][0](work, list(map(int, numbers)), given.seed):
            print(json.dumps(asdict(trial)), flush=True)
        return 0
    work.mkdir(parents=True, exist_ok=True)
    trials, deadline = logged(work), time.monotonic() + 60 * given.minutes
    with (work / "trials.jsonl").open("w", encoding="utf-8") as log:
        for trial in trials:
            print(json.dumps(asdict(trial)), file=log, flush=True)
        for kind in (name for name in KINDS if name.startswith(given.only)):
            for trial in missing(kind, trials, given.seed, deadline):
                trials.append(trial)
                print(json.dumps(asdict(trial)), file=log, flush=True)
    print(table(trials))
    return int(any(trial.found for trial in trials))


def logged(work: Path) -> list[Trial]:
    """The trials of one seed so far; a line that a kill cut short is run again."""
    path = work / "trials.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [Trial(**json.loads(line)) for line in lines if line.endswith("}")]


def missing(kind: str, trials: list[Trial], seed: int, deadline: float) -> Iterator[Trial]:
    """Trials of a kind until their counts reach the target or the time is over, each slice in a process of its own."""
    _, target, at_once = KINDS[kind]
    done = {trial.number: trial.count for trial in trials if trial.kind == kind}
    while sum(done.values()) < target and time.monotonic() < deadline:
        numbers = [number for number in range(len(done) + at_once) if number not in done][:at_once]
        command = [sys.executable, "-m", "tests.soak", "--seed", str(seed), "--slice", kind, *map(str, numbers)]
        try:
            ended = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=LONGEST, check=False)
            said, why = ended.stdout, ended.stderr[-500:] or f"exit {ended.returncode}"
        except subprocess.TimeoutExpired as hung:
            said, why = (hung.stdout or b"").decode(), f"no end after {LONGEST} s"
        found = [Trial(**json.loads(line)) for line in said.splitlines() if line.endswith("}")]
        if len(found) < len(numbers):
            found.append(Trial(kind, numbers[len(found)], 1, "", 0.0, f"the process of trials ended: {why}"))
        done |= {trial.number: trial.count for trial in found}
        yield from found


def table(trials: list[Trial]) -> str:
    """A Markdown table with one row per kind, and a line for every finding."""
    rows = ["| trials | number | count | findings | longest |", "|---|---|---|---|---|"]
    for name in KINDS:
        if of_kind := [trial for trial in trials if trial.kind == name]:
            count, found = sum(trial.count for trial in of_kind), sum(bool(trial.found) for trial in of_kind)
            longest = max(trial.seconds for trial in of_kind)
            rows.append(f"| {name} | {len(of_kind):,} | {count:,} | {found} | {longest:.1f} s |")
    return "\n".join([*rows, *(f"{t.kind} {t.number}: {t.what}: {t.found}" for t in trials if t.found)])


if __name__ == "__main__":
    sys.exit(main())
