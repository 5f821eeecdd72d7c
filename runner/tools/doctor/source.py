"""Whether an evening of a source would end: its documents, what it needs of machines and services, and trials there."""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import yaml

from runner.base.checks import Check
from runner.base.errors import InputError
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.records import WITHOUT_VECTORS, Document, PromptSide, parse_cell
from runner.base.store import Store
from runner.decide.roster import new_plan_text
from runner.embed.backends import Backend, Work
from runner.embed.embed_chunks import embed
from runner.embed.probe import PARAPHRASES
from runner.eval_set.corpus import archived_documents, listed_documents, sample_of, sample_to_draw
from runner.eval_set.shapes.labels import JudgeSpec
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version
from runner.evening.costs import Asked
from runner.evening.needs import Needs
from runner.judge.models.run_judges import ask_once, named_judges
from samplers.corpus.readiness import lines

_SIDES: tuple[PromptSide, ...] = ("query", "document")


@dataclass
class SourceChecks:
    """The checks of an evening to come, with who is to embed and to judge it; `backend` is open."""

    version: Version
    backend: Backend
    asked: Asked
    corpus_path: Path | None = None
    """Where the version's documents lie, or others, of which its plan's sample is drawn."""
    drawn: tuple[Document, ...] = field(default=(), init=False)
    """The documents, once they were read."""

    @cached_property
    def plan(self) -> Plan:
        """The plan in force, or the one that the first run writes."""
        if self.version.plan_path(rehearsal=self.version.rehearsal).exists():
            return self.version.plan()
        return Plan.model_validate(yaml.safe_load(new_plan_text(self.version, rehearsal=self.version.rehearsal)))

    def checks(self) -> Iterator[Check]:
        """Yield every check that costs nothing; what is left to pay for is counted once the documents are read."""
        yield Check(
            "documents",
            f"Give them: {DRIVER} doctor {self.version.flags} --corpus-path PATH",
            self._documents,
        )
        asked = replace(self.asked, documents=[len(document.text) for document in self.drawn])
        yield from Needs(self.version, self.plan, self.backend, asked, self.plan.cells).checks()

    def trials(self) -> Iterator[Check]:
        """Yield a trial of each encoder and of each judge that is asked, in earnest: it is charged."""
        for name in self._encoders:
            yield Check(
                f"trial of {name}",
                "Embed nothing there until this passes; compare the server's model, prompts and limits.",
                partial(self._embedded, name),
            )
        for judge in self._judges:
            yield Check(
                f"trial of {judge.model}",
                "Name another model in the plan, or mend what the message says.",
                partial(self._graded, judge),
            )

    @property
    def _encoders(self) -> list[str]:
        cells = [parse_cell(cell) for cell in self.plan.cells]
        return sorted({cell.encoder for cell in cells if not isinstance(cell, WITHOUT_VECTORS)})

    @property
    def _judges(self) -> list[JudgeSpec]:
        if self.asked.judge is None:
            return []
        return [judge for judge in named_judges(self.version, self.plan).each if not judge.by_file]

    def _documents(self) -> str:
        version, others = self.version, ""
        place = self.corpus_path or version.embedded_corpus
        if place is not None and not place.exists():
            raise InputError(f"{place} does not exist.")
        if version.corpus_path.exists():
            found = archived_documents(version) if self.corpus_path is None else None
            if found is not None:
                self.drawn = found
                return f"{len(self.drawn):,} in the archive, as listed"
            try:
                self.drawn = listed_documents(version, place)
                return f"{len(self.drawn):,} of {version.number_name}, as listed, in {place}"
            except InputError:
                if self.corpus_path is None:
                    raise
                others = f"; they are not those of {version.number_name}, which alone can be run"
        if place is None:
            raise InputError(f"{version.name} has no corpus yet, and none was given.")
        drawn = sample_of(version.source, sample_to_draw(version), place)
        self.drawn = drawn.documents
        return "\n".join((f"{len(self.drawn):,} are drawn from {display(place)}{others}", *lines(drawn.report)))

    def _embedded(self, name: str) -> str:
        """Return where the probe's sentences were embedded, once the engine took their rows."""
        encoder, texts = self.backend.encoder(name), [text for pair in PARAPHRASES for text in pair]
        tokens = sum(int(encoder.token_counts(texts, side).sum()) for side in _SIDES)
        self.backend.prepare([Work(name, len(_SIDES) * len(texts), tokens)])
        with tempfile.TemporaryDirectory() as scratch:
            facts = [embed(Store(Path(scratch)), encoder, texts, side).facts for side in _SIDES][-1]
        where = ", ".join(f"{fact} {value}" for fact, value in sorted(facts.items()))
        return f"{len(texts)} sentences came back as rows of {encoder.spec.dim} ({where})"

    def _graded(self, judge: JudgeSpec) -> str:
        assert self.asked.judge is not None, "only then a judge is asked"
        return f"it answered in the form that is asked for: grade {ask_once(self.version, judge, self.asked.judge)}"
