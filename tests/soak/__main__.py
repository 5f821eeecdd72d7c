"""python -m tests.soak [--seed N] [--minutes N] [--only KIND] [--kills N] [--mutations N] ...

Runs trials until every count is reached or the minutes are over, and prints a table; started again, it goes on.
One line a trial stands in .work/soak/SEED/trials.jsonl. Exit 1 if a trial found something.
"""

import argparse
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

from runner.base.places import CHECKOUT
from samplers.registry import SAMPLERS
from tests.soak import faults, flips, kills, mutations
from tests.soak.trials import Kind, Log, Trial

KINDS: dict[str, Kind] = {
    "kills": kills.SMALL,
    "demo-kills": kills.DEMO,
    **{f"mutations of {source}": mutations.kind(source) for source in SAMPLERS},
    "flips": flips.KIND,
    "faults": faults.KIND,
}
TARGETS = {"kills": 475, "demo-kills": 25, "mutations": 5000, "flips": 2000, "faults": 500}
"""Counts that a soak ends at; mutations are counted by source."""

LONGEST = 900.0
"""Seconds after which a process of trials is ended, and its trial counts as hung."""


def main() -> int:
    """1 if any trial found something."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__.splitlines()[2])
    for name, target in TARGETS.items():
        parser.add_argument(f"--{name}", type=int, default=target)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=120)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", default="", help="kinds whose name begins so")
    parser.add_argument("--slice", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    work = CHECKOUT / ".work" / "soak" / str(given.seed)
    if given.slice:
        kind, *numbers = given.slice
        for trial in KINDS[kind].run(work, [int(number) for number in numbers], given.seed):
            print(json.dumps(asdict(trial), ensure_ascii=False), flush=True)
        return 0
    log = Log(work / "trials.jsonl")
    soak = Soak(log, given.seed, time.monotonic() + 60 * given.minutes)
    targets = {name: vars(given)[name.split(" ")[0].replace("-", "_")] for name in KINDS if name.startswith(given.only)}
    with ThreadPoolExecutor(given.workers) as pool:
        for done in [pool.submit(soak.reach, name, target) for name, target in targets.items()]:
            done.result()
    print(table(log))
    for trial in log.trials:
        if trial.found:
            print(f"{trial.kind} {trial.number}: {trial.what}: {trial.found}")
    return int(any(trial.found for trial in log.trials))


class Soak:
    """Runs slices of trials in processes of their own, and logs each trial as it ends."""

    def __init__(self, log: Log, seed: int, deadline: float) -> None:
        self.log, self.seed, self.deadline = log, seed, deadline
        self._lock = threading.Lock()

    def reach(self, kind: str, target: int) -> None:
        """Run trials of a kind until their counts reach the target or the time is over."""
        while time.monotonic() < self.deadline:
            trials = self.log.of(kind)
            missing = target - sum(trial.count for trial in trials)
            if missing <= 0:
                return
            done = {trial.number for trial in trials}
            numbers = [number for number in range(len(done) + KINDS[kind].at_once) if number not in done]
            self._run(kind, numbers[: min(missing, KINDS[kind].at_once)])

    def _run(self, kind: str, numbers: list[int]) -> None:
        command = [sys.executable, "-m", "tests.soak", "--seed", str(self.seed), "--slice", kind, *map(str, numbers)]
        left, began = list(numbers), time.monotonic()
        with subprocess.Popen(
            command, cwd=CHECKOUT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout
            assert child.stderr
            said: list[str] = []
            listener = threading.Thread(target=lambda: said.extend(child.stderr or ()))
            listener.start()
            alarm = threading.Timer(LONGEST, child.kill)
            alarm.start()
            for line in child.stdout:
                self._add(Trial(**json.loads(line)))
                left.pop(0)
            listener.join()
            alarm.cancel()
        if left:
            words = "".join(said)[-500:] or f"exit {child.returncode}"
            lost = time.monotonic() - began
            self._add(Trial(kind, left[0], 1, "", "process ended", lost, f"the process of trials ended: {words}"))

    def _add(self, trial: Trial) -> None:
        with self._lock:
            self.log.add(trial)


def table(log: Log) -> str:
    """A Markdown table with one row per kind: counts, outcomes, findings, the longest trial."""
    rows = ["| trials | number | outcomes | findings | longest |", "|---|---|---|---|---|"]
    for name, kind in KINDS.items():
        trials = log.of(name)
        if trials:
            outcomes = ", ".join(f"{n:,} {what}" for what, n in Counter(t.outcome for t in trials).most_common())
            count, found = sum(t.count for t in trials), sum(bool(t.found) for t in trials)
            longest = max(t.seconds for t in trials)
            rows.append(f"| {name} | {count:,} {kind.unit} | {outcomes} | {found} | {longest:.1f} s |")
    return "\n".join(rows)


if __name__ == "__main__":
    sys.exit(main())
