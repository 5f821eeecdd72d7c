"""What would end an evening late, looked at early: documents, account, hub, encoders, disk, keys, the total.

At no cost, but for the trials that `doctor SOURCE --yes` asks for.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import yaml

from runner.base.errors import BackendError, EvalError, InputError, PackageMissing
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.records import WITHOUT_VECTORS, Document, PromptSide, parse_cell
from runner.base.steps import Check, Skipped, writable_folders
from runner.base.store import Store
from runner.decide.locked_gains import new_plan_text
from runner.embed.backends import Backend, LocalBackend, Work
from runner.embed.cost.estimate import size
from runner.embed.embed_chunks import embed
from runner.embed.probe import PARAPHRASES
from runner.embed.weights import HubSilent, encodings, hub_has, install_advice, tokenizer, tokenizer_folder
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec
from runner.eval_set.corpus import archived_documents, listed_documents, sample_of, sample_to_draw
from runner.eval_set.labels import closed
from runner.eval_set.shapes.labels import JudgeSpec
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_corpus
from runner.evening.costs import Asked, Costs, costs, current
from runner.judge.models.run_judges import ask_once, asked_judges, check_judges, named_judges
from samplers.corpus.readiness import lines

SPARE_GB = 0.5
"""For runs, chunks and pages, beside weights and vectors."""

SCORES_GB = 0.05
"""For results and pages alone, if no cell is left to be made."""

CHUNK_TOKENS = 100
"""A chunk has more, so vectors take less than is asked for; they lie on the disk twice while they are made."""

_TEXT = "Sec. 2. The fee is $1,250 a berth."
_SIDES: tuple[PromptSide, ...] = ("query", "document")


@dataclass
class Needs:
    """What an evening of a version needs of documents, machines and services; `backend` is open."""

    version: Version
    backend: Backend
    asked: Asked
    cells: Sequence[str] | None = None
    """Those that are still to be made, None for all of the plan's; of what is made nothing has to be had."""
    corpus_path: Path | None = None
    """Where the version's documents lie, or others, of which its plan's sample is drawn."""
    drawn: tuple[Document, ...] = field(default=(), init=False)
    """The documents, once they were read."""
    located: dict[str, str] = field(default_factory=dict, init=False)
    """Where each encoder's weights are, "" for the hub; asked once."""
    refused: bool = field(default=False, init=False)
    """Whether the account is, so that nothing can be asked of what lies there."""
    hubless: bool = field(default=False, init=False)
    """Whether the model hub cannot be reached from here."""

    @cached_property
    def plan(self) -> Plan:
        """The plan in force, or the one that the first run writes."""
        if self.version.plan_path(rehearsal=self.version.rehearsal).exists():
            return self.version.plan()
        return Plan.model_validate(yaml.safe_load(new_plan_text(self.version, rehearsal=self.version.rehearsal)))

    @cached_property
    def left(self) -> Costs:
        """What embedding and judging still cost, of the documents that were drawn if the version has none."""
        return costs(self.version, self.plan, replace(self.asked, documents=[len(each.text) for each in self.drawn]))

    @property
    def encoders(self) -> list[str]:
        """The encoders of these cells."""
        parsed = [parse_cell(cell) for cell in (self.plan.cells if self.cells is None else self.cells)]
        return sorted({cell.encoder for cell in parsed if not isinstance(cell, WITHOUT_VECTORS)})

    def checks(self, *, documents: bool = False) -> Iterator[Check]:
        """Yield the plan's check and, if it can be run, those of machines and services, documents first if asked."""
        yield Check("plan", "Do that, then look again: nothing else was looked at.", self._planned)
        try:
            self._planned()
        except EvalError:
            return
        if documents:
            yield Check(
                "documents", f"Give them: {DRIVER} doctor {self.version.flags} --corpus-path PATH", self._documents
            )
        if self.backend.rented is not None:
            yield Check(
                "Modal",
                "Run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET; see status.modal.com.",
                self._workspace,
            )
        yield Check("model hub", "Run where the hub can be reached, or set HF_ENDPOINT to a mirror.", self._hub)
        missing = "Run again where it can be had, or go on without it; a damaged file is fetched again once deleted."
        for name in self.encoders:
            yield Check(f"encoder {name}", missing, partial(self._encoder, name))
        yield Check(
            "passages for judges", "Install what the message names; long documents are cut by it.", self._passages
        )
        yield Check("disk", "Free some space, or put the cache elsewhere with PER_SOURCE_EVAL_CACHE.", self._disk)
        yield Check(
            "judges' keys",
            "Set the key that the message names, or have the pairs judged by file where it says so.",
            self._keys,
        )
        yield Check(
            "total",
            "Allow more with --max-usd, or ask for less: another --gpu, a cheaper judge, fewer queries.",
            self._total,
        )

    def trials(self) -> Iterator[Check]:
        """Yield a trial of each encoder and of each judge that is asked, in earnest: it is charged."""
        for name in self.encoders:
            yield Check(
                f"trial of {name}",
                "Embed nothing there until this passes; compare the server's model, prompts and limits.",
                partial(self._embedded, name),
            )
        judges = [] if self.asked.judge is None else named_judges(self.version, self.plan).each
        for judge in (judge for judge in judges if not judge.by_file):
            yield Check(
                f"trial of {judge.model}",
                "Name another model in the plan, or mend what the message says.",
                partial(self._graded, judge),
            )

    def _planned(self) -> str:
        if self.asked.judge is not None:
            named_judges(self.version, self.plan)
        made, _ = current(self.version, self.plan)
        return f"{len(self.plan.cells)} cells, {len(made)} of them run already"

    def _documents(self) -> str:
        version, others = self.version, ""
        corpus = self.corpus_path or version.embedded_corpus
        if corpus is not None and not corpus.exists():
            raise InputError(f"{corpus} does not exist.")
        if version.corpus_path.exists():
            # The archive beats every folder: it holds what was sampled, byte for byte.
            archived = archived_documents(version) if self.corpus_path is None else None
            if archived is not None:
                self.drawn = archived
                return f"{len(self.drawn):,} in the archive, as listed"
            try:
                self.drawn = listed_documents(version, corpus)
                return f"{len(self.drawn):,} of {version.number_name}, as listed, in {corpus}"
            except InputError:
                if self.corpus_path is None:
                    raise
                others = f"; they are not those of {version.number_name}, which alone can be run"
        if corpus is None:
            raise InputError(f"{version.name} has no corpus yet, and none was given.")
        drawn = sample_of(version.source, sample_to_draw(version), corpus)
        self.drawn = drawn.documents
        return "\n".join((f"{len(self.drawn):,} are drawn from {display(corpus)}{others}", *lines(drawn.report)))

    def _workspace(self) -> str:
        try:
            return f"the token is taken, workspace {self.backend.account()}"
        except BackendError:
            self.refused = True
            raise

    def _spec(self, name: str) -> EncoderSpec:
        return catalog.encoder(name, self.plan.encoders)

    def _where(self, name: str) -> str:
        if self.refused and not self._spec(name).api:
            raise Skipped("Modal does not answer to this token")
        if name not in self.located:
            self.located[name] = self.backend.located(self._spec(name))
        return self.located[name]

    def _hub(self) -> str:
        """Say whether the hub answers, if anything has to come from it; an encoder that fails has its own check."""
        for name in (name for name in self.encoders if not self._spec(name).api):
            try:
                if self._where(name):
                    continue
            except PackageMissing:
                if self._spec(name).package:  # which brings the weights
                    continue
            except (EvalError, Skipped):
                continue
            try:
                hub_has(self._spec(name))
            except HubSilent as error:
                self.hubless = True
                if self.backend.rented is not None:
                    raise Skipped(f"unknown: {error} Modal fetches weights by itself.") from error
                raise HubSilent(
                    f"{error} {name} is not on this machine. Run where the hub can be reached, or set HF_ENDPOINT to a "
                    "mirror. Packaged encoders do without: `run --try` (nothing of it counts), `run --rehearse` (its "
                    "grades count). What is finished is kept."
                ) from error
            except BackendError:
                pass  # the encoder's own check says what is wrong with it
            return "it answers"
        raise Skipped("not asked: nothing has to come from it")

    def _encoder(self, name: str) -> str:
        spec, place = self._spec(name), self._where(name)
        if not place:
            if self.hubless:
                raise Skipped("the model hub cannot be asked from here")
            try:
                hub_has(spec)
            except BackendError as error:
                raise BackendError(f"{error}\n{without_advice(self.version, name)}") from error
            pinned = f"revision {spec.revision[:12]}" if spec.revision else "pinned at first use"
            place = f"at the model hub, {pinned}; {size(name).weights_gb:.1f} GB to download"
        if not spec.api and spec.revision:  # its tokenizer counts here what is embedded elsewhere too
            try:
                list(encodings(tokenizer(tokenizer_folder(spec)), [_TEXT]))
            except EvalError:
                raise
            except Exception as error:  # the library's own, of a file that it cannot read
                raise BackendError(f"The tokenizer of {name} cannot be read ({error}).") from error
        return place

    def _passages(self) -> str:
        """Say where the encoder is that finds what judges are shown of long documents, whatever embeds the cells."""
        settings, lengths = self.plan.evidence, [len(each.text) for each in self.drawn]
        if self.version.corpus_path.exists():
            lengths = [row.n_chars for row in load_corpus(self.version.corpus_path)[1]]
        n_long = sum(n_chars > settings.chars for n_chars in lengths)
        if not n_long or closed(self.version) or self.version.source.policy == "external":
            return "not needed: no document is cut for a judge"
        spec = catalog.encoder(settings.encoder)
        if not LocalBackend().located(spec):
            raise PackageMissing(f"{n_long:,} documents are too long to be shown whole. {install_advice(spec)}")
        return f"{spec.name} of this machine, for {n_long:,} documents of more than {settings.chars:,} characters"

    def _disk(self) -> str:
        specs = [self._spec(name) for name in self.encoders]
        weights = sum(size(spec.name).weights_gb for spec in specs if self.located.get(spec.name) == "")
        if self.backend.rented is not None:  # they lie in the backend's own volume
            weights = 0.0
        tokens = self.left.embedding
        vectors = sum(
            2 * 4 * spec.dim * tokens[spec.name].tokens / CHUNK_TOKENS for spec in specs if spec.name in tokens
        )
        spare = SCORES_GB if self.cells is not None and not self.cells else SPARE_GB
        needed = spare + weights + vectors / 1e9
        folders = (self.version.cache, self.version.work, self.version.folder)
        return f"{writable_folders(folders, needed)}; some {needed:.1f} GB are needed"

    def _keys(self) -> str:
        if self.asked.judge is None or closed(self.version):
            raise Skipped("no --judge, so judging is by file" if self.asked.judge is None else "every grade is final")
        judges = asked_judges(self.version, self.plan)
        if troubles := check_judges(self.version, judges, self.asked.judge):
            raise Skipped("; ".join(troubles))
        return ", ".join(judge.model for judge in judges)

    def _total(self) -> str:
        left = self.left
        if not left.unknown:
            left.total.check(left.lines)
        free = "nothing is paid for" + (", judging left out (--judge counts it)" if self.asked.judge is None else "")
        parts = left.said[len(left.lines) :] or [free]
        return "\n".join([*parts, *left.lines]).removeprefix("total: ")

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


def without_advice(version: Version, model: str) -> str:
    """Return how an evening goes on without a model that cannot be had."""
    if version.preregistration_path.exists():
        return (
            f"{version.number_name} is frozen with cells of {model}; an evaluation without them takes a new version: "
            f"{DRIVER} version {version.origin.flags}"
        )
    path = version.plan_path(rehearsal=version.rehearsal)
    return f"To go on without {model}, remove its cells from {path}, and run again."
