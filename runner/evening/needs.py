"""What would end an evening late, looked at early and at no cost: account, hub, encoders, disk, keys, the total."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from runner.base.checks import Check, Skipped, writable_folders
from runner.base.errors import BackendError, EvalError, PackageMissing
from runner.base.places import DRIVER
from runner.base.records import WITHOUT_VECTORS, parse_cell
from runner.embed.backends import Backend
from runner.embed.cost.estimate import size
from runner.embed.weights import HubSilent, encodings, hub_has, tokenizer, tokenizer_folder
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec
from runner.eval_set.labels import closed
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version
from runner.evening.costs import Asked, Costs, costs
from runner.judge.models.run_judges import asked_judges, check_judges

SPARE_GB = 0.5
"""For runs, chunks and pages, beside weights and vectors."""

CHUNK_TOKENS = 100
"""A chunk has more, so vectors take less than is asked for; they lie on the disk twice while they are made."""

_TEXT = "Sec. 2. The fee is $1,250 a berth."


@dataclass
class Needs:
    """What an evening of a version needs of machines and services; `backend` is open."""

    version: Version
    plan: Plan
    backend: Backend
    asked: Asked
    cells: Sequence[str]
    """Those that are still to be made; of what is made nothing has to be had."""
    located: dict[str, str] = field(default_factory=dict, init=False)
    """Where each encoder's weights are, "" for the hub; asked once."""
    refused: bool = field(default=False, init=False)
    """Whether the account is, so that nothing can be asked of what lies there."""
    hubless: bool = field(default=False, init=False)
    """Whether the model hub cannot be reached from here."""

    @property
    def encoders(self) -> list[str]:
        """The encoders of these cells."""
        parsed = [parse_cell(cell) for cell in self.cells]
        return sorted({cell.encoder for cell in parsed if not isinstance(cell, WITHOUT_VECTORS)})

    @property
    def _with_weights(self) -> list[str]:
        """The encoders that are no service: the hub has their weights."""
        return [name for name in self.encoders if not self._spec(name).api]

    @cached_property
    def left(self) -> Costs:
        """What embedding and judging still cost."""
        return costs(self.version, self.plan, self.asked)

    def checks(self) -> list[Check]:
        """The checks of machines and services, at no cost but a word to each service of the plan's own."""
        account = Check(
            "Modal",
            "Run `modal token new`, or set MODAL_TOKEN_ID and MODAL_TOKEN_SECRET; see status.modal.com.",
            self._workspace,
        )
        return [
            *([] if self.backend.rented is None else [account]),
            Check(
                "model hub",
                "Run where the hub can be reached, or set HF_ENDPOINT to a mirror.",
                self._hub,
            ),
            *(
                Check(
                    f"encoder {name}",
                    "Run again where it can be had, or go on without it; a damaged file is fetched again once deleted.",
                    partial(self._encoder, name),
                )
                for name in self.encoders
            ),
            Check(
                "disk",
                "Free some space, or put the cache elsewhere with PER_SOURCE_EVAL_CACHE.",
                self._disk,
            ),
            Check(
                "judges' keys",
                "Set the key that the message names, or have the pairs judged by file where it says so.",
                self._keys,
            ),
            Check(
                "total",
                "Allow more with --max-usd, or ask for less: another --gpu, a cheaper judge, fewer queries.",
                self._total,
            ),
        ]

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
        """Whether the hub answers, if anything has to come from it; an encoder that fails has a check of its own."""
        for name in self._with_weights:
            try:
                if self._where(name):
                    continue
            except PackageMissing:
                if self._spec(name).package:  # which brings the weights
                    continue
            except EvalError:
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
            place = f"at the model hub, revision {spec.revision[:12]}; {size(name).weights_gb:.1f} GB to download"
        if not spec.api:
            _read_tokenizer(spec)
        return place

    def _disk(self) -> str:
        specs = [self._spec(name) for name in self.encoders]
        weights = sum(size(spec.name).weights_gb for spec in specs if self.located.get(spec.name) == "")
        if self.backend.rented is not None:
            weights = 0.0
        vectors = sum(
            2 * 4 * spec.dim * left.tokens / CHUNK_TOKENS
            for spec in specs
            if (left := self.left.embedding.get(spec.name)) is not None
        )
        needed = SPARE_GB + weights + vectors / 1e9
        folders = (self.version.cache, self.version.work, self.version.folder)
        return f"{writable_folders(folders, needed)}; some {needed:.1f} GB are needed"

    def _keys(self) -> str:
        if self.asked.judge is None or closed(self.version):
            raise Skipped("no --judge, so judging is by file" if self.asked.judge is None else "every grade is final")
        judges = asked_judges(self.version, self.plan)
        check_judges(self.version, judges, self.asked.judge)
        return ", ".join(judge.model for judge in judges)

    def _total(self) -> str:
        left = self.left
        if not left.unknown:
            left.total.check(left.lines)
        free = "nothing is paid for" + (", judging left out (--judge counts it)" if self.asked.judge is None else "")
        parts = left.said[len(left.lines) :] or [free]
        return "\n".join([*parts, *left.lines]).removeprefix("total: ")


def without_advice(version: Version, model: str) -> str:
    """Return how an evening goes on without a model that cannot be had."""
    if version.preregistration_path.exists():
        return (
            f"{version.number_name} is frozen with cells of {model}; an evaluation without them takes a new version: "
            f"{DRIVER} version {version.origin.flags}"
        )
    path = version.plan_path(rehearsal=version.rehearsal)
    return f"To go on without {model}, remove its cells from {path}, and run again."


def _read_tokenizer(spec: EncoderSpec) -> None:
    """Raise BackendError unless the encoder's tokenizer can be read here: it counts what is embedded elsewhere too."""
    try:
        encodings(tokenizer(tokenizer_folder(spec)), [_TEXT])
    except EvalError:
        raise
    except Exception as error:  # the library's own, of a file that it cannot read
        raise BackendError(f"The tokenizer of {spec.name} cannot be read ({error}).") from error
