"""An exploration: cells that an operator tries beside the record, in .work alone."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from runner.base.canonical import digest, rename_synced, write_atomic
from runner.base.errors import InputError
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.records import parse_cell
from runner.decide.results import make_results
from runner.embed.chunk_corpus import chunkers_sha256
from runner.eval_set.lock import verify_version
from runner.eval_set.plan import check_cell
from runner.eval_set.preregistration import verified_preregistration
from runner.eval_set.version import Version, alone, is_made, load_cell_file
from runner.evening.session import Session
from runner.gate.gate import Gate
from runner.score.comparison import load_comparison


@dataclass
class Exploration(Session):
    """One run of the driver over cells that decide nothing."""

    cells: Sequence[str] = ()

    def run(self) -> str:
        """Return the answer for stdout: every cell's scores, and where their page lies."""
        with alone(self.version):
            verify_version(self.version)
            return self._explore()

    def _explore(self) -> str:
        if not self.version.preregistration_path.exists():
            raise InputError(
                f"{self.version.name} is not preregistered yet, so there is nothing to explore on. "
                f"Run {DRIVER} run {self.version.flags} first."
            )
        given = [parse_cell(cell) for cell in self.cells]
        for cell in given:
            check_cell(cell, self.plan.encoders)
        # The baseline is always among them: every other cell is a difference to it.
        cells = list(dict.fromkeys([self.plan.baseline, *map(str, given)]))
        folder = self.version.work / "explorations" / digest(cells)[:12]
        fresh = folder.with_name(f"{folder.name}.new")
        verified_preregistration(self.version)
        self.plan = self.plan.model_copy(update={"cells": cells})
        # Made anew beside the earlier one: a chunker that changed since must not find its old runs.
        _remove(fresh)
        self._take_runs(fresh)
        self.make_runs()
        # Adjusted over a part of the family, a preregistered cell would seem surer than in the record.
        comparison = load_comparison(self.version, self.plan, frozenset())
        scored = make_results(self.version, comparison, Gate.over(comparison), kind="exploration")
        self.write(scored, fresh)
        # Only a whole exploration takes the place of the earlier one.
        _remove(folder)
        rename_synced(fresh, folder)
        self.scored = scored.results, folder
        return f"exploration, nothing is decided: {folder / 'results.html'}"

    def _take_runs(self, folder: Path) -> None:
        """Go on in `folder`, with the runs of the record, which are authoritative.

        A cell that was asked for and whose chunker changed since is not taken: whoever works on it sees its scores.
        """
        before = self.version
        self.version = replace(before, apart=folder)
        for wanted in self.wanted(noise_floor=False):
            if not is_made(before, str(wanted.cell), wanted.name):
                continue
            facts = load_cell_file(before.cell_path(wanted.name))
            if wanted.name != self.plan.baseline and facts.chunkers_sha256 != chunkers_sha256(wanted.cell.chunker):
                say(f"{wanted.name}: the chunkers changed since the record was made; this run is new")
                continue
            for kind in (Version.chunk_run_path, Version.run_path, Version.cell_path):
                if (path := kind(before, wanted.name)).exists():
                    write_atomic(kind(self.version, wanted.name), path.read_bytes())


def _remove(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
