"""What every run of the driver has: a version, what the operator asked for, and what was measured on the way."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from runner.base.canonical import json_bytes, write_atomic
from runner.base.places import DRIVER
from runner.base.records import WITHOUT_VECTORS, Document, OwnCell, parse_cell
from runner.base.store import Store
from runner.decide.receipt import CellTimes, embedded_by, index_sizes, make_receipt, remember_times
from runner.decide.results import Scored
from runner.embed.backends import Backend, LocalBackend
from runner.embed.cost.ledger import SPEND, spend_receipt
from runner.eval_set.corpus import corpus_documents, fetched_corpus
from runner.eval_set.runs import packed
from runner.eval_set.shapes.decision import Decision
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.shapes.results import Results
from runner.eval_set.version import NOISE_FLOOR_CELL, Version
from runner.judge.evidence import TABLE, Passages
from runner.report.results_page import page
from runner.retrieve.make_runs import CellRuns, Wanted

if TYPE_CHECKING:
    from runner.decide.decide import Choice
    from runner.judge.models.api import JudgeOptions

PAGE = "results.html"


@dataclass
class Session(ABC):
    """One run of the driver over one version: what the operator asked for, and what was measured on the way."""

    version: Version
    corpus_path: Path | None = None
    choice: "Choice | None" = None
    options: str = ""
    """The driver's arguments as given, for the commands that messages name."""
    backend: Backend = field(default_factory=LocalBackend)
    judge: "JudgeOptions | None" = None
    """How the plan's judges are asked; None if people or agents judge by file."""
    live: bool = False
    """Whether the live feed may be asked for documents if the version has none yet."""
    writes_page: bool = field(default=True, kw_only=True)
    """Whether the page is wanted, beside what it shows."""
    scored: tuple[Results, Path] | None = field(default=None, init=False)
    """What this run scored, and the folder that holds it."""
    seconds: dict[str, float] = field(default_factory=dict, init=False)
    """How long each stage took."""
    times: CellTimes = field(default_factory=dict, init=False)
    """What was measured of each cell."""

    @abstractmethod
    def run(self) -> str:
        """Return the answer for stdout; what a person must do, and verdicts, are raised."""

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Add the seconds that the block takes to the stage's."""
        started = perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + perf_counter() - started

    @cached_property
    def plan(self) -> Plan:
        """The plan in force."""
        return self.version.plan(rehearsal=self.version.rehearsal)

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        """The version's documents, from its archive or else from where the corpus lies."""
        return corpus_documents(self.version, self.corpus_place)

    @cached_property
    def corpus_place(self) -> Path | None:
        """Where documents are drawn from; None if nothing was given."""
        if self.live and not self.version.corpus_path.exists():
            return fetched_corpus(self.version)
        return self.corpus_path or self.version.embedded_corpus

    @property
    def again(self) -> str:
        """The command that continues this run."""
        return f"{DRIVER} {self.options}".strip()

    @cached_property
    def runs(self) -> CellRuns:
        """The maker of this version's runs."""
        return CellRuns(self.version, lambda: self.documents, self.backend)

    @cached_property
    def passages(self) -> Passages:
        """What judges are shown of documents; the encoders that find it run here, whatever embeds the cells."""
        settings, here = self.plan.evidence, self.backend
        own = here if isinstance(here, LocalBackend) else LocalBackend()
        return Passages(settings, own.encoder(settings.encoder), own.encoder(TABLE), Store(self.version.cache))

    def wanted(self, *, noise_floor: bool) -> list[Wanted]:
        """Return the runs of the plan's cells; with `noise_floor` also the A/A run, if the baseline has vectors."""
        cells: list[OwnCell] = [parse_cell(cell) for cell in self.plan.cells]
        # An imported baseline, of an evaluation from Python, is no cell to make.
        again = [Wanted(cell, True) for cell in cells if noise_floor and str(cell) == self.plan.baseline]
        return [*map(Wanted, cells), *(each for each in again if not isinstance(each.cell, WITHOUT_VECTORS))]

    def make_runs(self) -> None:
        """Make the runs of the plan's cells that the record lacks, and keep what was measured of them."""
        with self.timed("runs"):
            self.runs.make(self.wanted(noise_floor=False))
        self.times = remember_times(self.version, self.runs.measured)

    def write(
        self, scored: Scored, folder: Path, decision: Decision | None = None, content: bytes | None = None
    ) -> None:
        """Put lists.json.bz2, results.json, receipt.json, decision.json if there is one and, last, the page there.

        `content` is results.json, if the caller has made it.
        """
        results, lists = scored.results, json_bytes(scored.lists.model_dump())
        content = content or json_bytes(results.model_dump())
        # What was measured stands in the receipt alone: results are the same bytes on any machine.
        cells = [row.cell for row in results.cells] + [NOISE_FLOOR_CELL] * (results.noise_floor is not None)
        version, times = self.version, self.times
        sizes = index_sizes(version, cells)
        own = {cell: times.get(cell, {}) | sizes.get(cell, {}) for cell in cells if cell in times or cell in sizes}
        spend = spend_receipt(version.work / SPEND)
        receipt = make_receipt(own, self.seconds, embedded_by(version, cells), spend)
        write_atomic(folder / "lists.json.bz2", packed(lists))
        write_atomic(folder / "results.json", content)
        write_atomic(folder / "receipt.json", json_bytes(receipt.model_dump()))
        if decision is not None:
            write_atomic(folder / "decision.json", json_bytes(decision.model_dump()))
        if self.writes_page:
            write_atomic(folder / PAGE, page(content, lists, receipt, decision))
        self.scored = results, folder
