"""Every failure that a person meets, one tree.

EvalError
├── NegativeVerdict   exit 1   the gate failed, a control misbehaved, nothing is decided
├── InputError        exit 2   a flag, file or plan that a person must correct
│   ├── PlanError     exit 2   a plan that breaks criteria, all of them named at once
│   └── DocumentError exit 2   one document that cannot be read; a corpus reader quarantines it
├── InputNeeded       exit 3   queries, labels or a choice are still to come from a person
├── IntegrityError    exit 4   a frozen file changed
└── BackendError      exit 5   an encoder, the disk or the budget gave out
    └── PackageMissing exit 5  a library is not installed; the message has the command that installs it

A message says what is wrong, where, and what to do next.
"""

from collections.abc import Sequence

DEFECT = 70
"""Exit code of what nobody foresaw (EX_SOFTWARE): apart from 1, which says that a verdict is negative."""


class EvalError(Exception):
    """Base of the tree; `exit_code` is the process's exit code when it reaches the command line."""

    exit_code = 2


class NegativeVerdict(EvalError):
    """The run is complete and its verdict is no."""

    exit_code = 1


class InputError(EvalError):
    """Something given to the tool is wrong."""

    exit_code = 2


class PlanError(InputError):
    """A plan that breaks one or more acceptance criteria; the message lists every one."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        lines = "\n".join(f"  - {problem}" for problem in problems)
        is_criterion = any(problem.startswith("criterion") for problem in problems)
        meaning = "A criterion is what a plan must meet before it may decide. " if is_criterion else ""
        super().__init__(f"{where} cannot be run:\n{lines}\n{meaning}Edit {where} and run the command again.")


class DocumentError(InputError):
    """One document that cannot be read; `reason` is short enough for a table."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


class InputNeeded(EvalError):
    """A person's turn, which is no error: what is outstanding, and numbered ways to bring it, commands among them.

    A stop of an evening has a `head`, under which stand the steps that are done, and notes on what is in doubt.
    """

    exit_code = 3
    printed = False
    """Whether stdout has said it already, as JSON."""

    def __init__(
        self,
        outstanding: str,
        ways: Sequence[str] = (),
        *,
        head: str = "",
        done: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> None:
        self.outstanding = outstanding
        self.ways = tuple(ways)
        self.head = head
        self.done = tuple(done)
        self.notes = tuple(notes)
        super().__init__(outstanding)

    def __str__(self) -> str:
        """Return steps with ticks, what is outstanding behind an arrow, the ways as a numbered list, the notes."""
        lines = [self.outstanding]
        if self.head:
            lines = [self.head, "", *(f"  ✓ {step}" for step in self.done), f"  → {self.outstanding}"]
        if self.ways:
            hanging = (way.replace("\n", "\n     ") for way in self.ways)
            lines += ["", *(f"{number}. {way}" for number, way in enumerate(hanging, start=1))]
        if self.notes:
            lines += ["", *(f"note: {note}" for note in self.notes)]
        return "\n".join(lines)


class IntegrityError(EvalError):
    """A file of a frozen version is not what its lock says."""

    exit_code = 4


class BackendError(EvalError):
    """An encoder, the disk or the budget gave out; what was finished is kept."""

    exit_code = 5


class PackageMissing(BackendError):
    """A library is not installed."""
