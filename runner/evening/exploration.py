"""Explorations: cells of the operator's choice beside the baseline, on the frozen set, in .work alone."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.base.canonical import digest, write_atomic
from runner.base.errors import InputError
from runner.base.progress import say
from runner.base.records import parse_cell
from runner.decide.results import make_results
from runner.embed.chunk_corpus import chunkers_sha256
from runner.eval_set.corpus import texts_to_show
from runner.eval_set.plan import check_cell
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.version import DRIVER, Version, load_cell_file
from runner.evening.evening import Evening
from runner.report.summary import run_summary
from runner.retrieve.make_runs import CellRuns


@dataclass
class Exploration(Evening):
    """One run of the driver over cells that decide nothing."""

    cells: Sequence[str] = ()

    def _advance(self) -> str:
        if not self.version.preregistration_path.exists():
            raise InputError(
                f"{self.version.name} is not preregistered yet, so there is nothing to explore on. "
                f"Run {DRIVER} {self.version.flags} first."
            )
        given = [parse_cell(cell) for cell in self.cells]
        for cell in given:
            check_cell(cell)
        cells = list(dict.fromkeys([self.plan.baseline, *map(str, given)]))
        folder = self.version.work / "explorations" / digest(cells)[:12]
        fresh = folder.with_name(f"{folder.name}.new")
        verified_preregistration(self.version)
        self.plan = self.plan.model_copy(update={"cells": cells})
        # Made anew beside the earlier one: a chunker that changed since must not find its old runs.
        _remove(fresh)
        self._take_runs(fresh, cells)
        self.version = replace(self.version, record=fresh)
        self._make_runs(noise_floor=False)
        # Adjusted over a part of the family, a preregistered cell would seem surer than in the record.
        results = make_results(
            self.version, self.plan, cells, frozenset(), kind="exploration", texts=texts_to_show(self.version)
        )
        self._write_results(results, fresh)
        _remove(folder)
        fresh.rename(folder)
        self.scored = results, folder
        return f"{run_summary(results)}\nexploration, nothing is decided: {folder / 'results.html'}"

    def _take_runs(self, folder: Path, cells: Sequence[str]) -> None:
        """Runs that lie in the record are authoritative: an exploration compares with them, not with a recomputation.

        But for a cell that was asked for while its chunker's source is another: whoever works on it sees its scores.
        """
        recorded = CellRuns(self.version, lambda: self.documents, self.backend)
        exploration = replace(self.version, record=folder)
        for cell in cells:
            if not recorded.is_current(cell):
                continue
            facts = load_cell_file(self.version.cell_path(cell))
            if cell != self.plan.baseline and facts.chunkers_sha256 != chunkers_sha256():
                say(f"{cell}: the chunkers changed since the record was made; this run is new")
                continue
            for kind in (Version.chunk_run_path, Version.run_path, Version.cell_path):
                write_atomic(kind(exploration, cell), kind(self.version, cell).read_bytes())


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
