"""What a trial is, and the log that lets a soak go on where it was stopped."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple


@dataclass(frozen=True)
class Trial:
    """One trial's end. `count` is what it adds to its kind's target; `found` says what went wrong, "" if nothing did.

    `outcome` is a word to count by ("refused", "same bytes"), `what` says what was done.
    """

    kind: str
    number: int
    count: int
    what: str
    outcome: str
    seconds: float
    found: str = ""


class Kind(NamedTuple):
    """A kind of trial: `run(work, numbers, seed)` yields one Trial per number, in order.

    `at_once` trials share a process; `unit` names what a target counts.
    """

    run: Callable[[Path, Sequence[int], int], Iterator[Trial]]
    at_once: int
    unit: str


class Log:
    """The trials of one seed so far, one JSON line each; a line that a kill cut short is run again."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.trials = [Trial(**row) for row in _rows(path)]
        path.write_text("".join(_line(trial) for trial in self.trials), encoding="utf-8")

    def add(self, trial: Trial) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_line(trial))
        self.trials.append(trial)

    def of(self, kind: str) -> list[Trial]:
        return [trial for trial in self.trials if trial.kind == kind]


def _line(trial: Trial) -> str:
    return json.dumps(asdict(trial), ensure_ascii=False) + "\n"


def _rows(path: Path) -> Iterator[dict[str, object]]:
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                return
