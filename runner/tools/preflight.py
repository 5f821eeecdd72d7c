"""Whether an evening of a source would end, looked at before it costs anything; its encoders and judges in a trial.

The health of chunks is what a bulk embedding should be stopped by.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import yaml

from chunkers.registry import limit_of
from runner.base.canonical import JSON, today
from runner.base.checks import Check, Skipped
from runner.base.errors import InputError, NegativeVerdict
from runner.base.git import git_state, untracked
from runner.base.given_files import display
from runner.base.places import DRIVER
from runner.base.records import WITHOUT_VECTORS, CrossCell, Document, parse_cell
from runner.decide.roster import new_plan_text
from runner.embed.backends import Backend
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.chunk_health import chunk_health
from runner.embed.cost.estimate import TokenCount, estimate, service_usd
from runner.embed.cost.ledger import all_sessions
from runner.embed.cost.prices import size
from runner.embed.local_encoder import encoder_class
from runner.embed.parity.compare import n_tokens
from runner.embed.reranker import FILES, reranker_for
from runner.embed.weights import hub_has, is_here
from runner.eval_set import catalog
from runner.eval_set.catalog import EncoderSpec
from runner.eval_set.corpus import archived_documents, listed_documents, sample_of, sample_to_draw
from runner.eval_set.plan import query_count_problem
from runner.eval_set.shapes.cell import ChunkHealth
from runner.eval_set.shapes.labels import JudgeSpec
from runner.eval_set.shapes.plan import Plan
from runner.eval_set.version import Version, load_queries
from runner.evening.costs import Asked
from runner.evening.preflight import Preflight, without_advice
from runner.evening.stops import missing_documents
from runner.judge.models.estimate import trial_usd
from runner.judge.models.run_judges import ask_once, named_judges
from runner.tools.doctor.parity import smoked
from samplers.corpus.readiness import boilerplate_share, lines


@dataclass(frozen=True, slots=True)
class EncoderTokens:
    """A chunker's chunks as one encoder's own tokenizer counts them; `lost` is the share of tokens past its maximum."""

    encoder: str
    p50: int
    p95: int
    most: int
    lost: float


@dataclass(frozen=True, slots=True)
class ChunkerRow:
    """One chunker over the sample."""

    chunker: str
    health: ChunkHealth
    encoders: tuple[EncoderTokens, ...]


@dataclass
class Flight:
    """An evening to come, with who is to embed and to judge it; `backend` is open."""

    version: Version
    backend: Backend
    asked: Asked
    corpus_path: Path | None = None
    """Where the version's documents lie, or others, of which its plan's sample is drawn."""
    chunkers: Sequence[str] = ()
    """Others than the plan's."""
    rows: list[ChunkerRow] = field(default_factory=list, init=False)
    """The health of each chunker's chunks, once it was looked at."""
    drawn: tuple[Document, ...] = field(default=(), init=False)
    """The documents, once they were read."""

    @cached_property
    def plan(self) -> Plan:
        """The plan in force, or the one that the first run writes."""
        if self.version.plan_path(rehearsal=self.version.rehearsal).exists():
            return self.version.plan()
        return Plan.model_validate(yaml.safe_load(new_plan_text(self.version, rehearsal=self.version.rehearsal)))

    def checks(self) -> Iterator[Check]:
        """Every check that costs nothing; what is left is counted once the documents are read.

        With other chunkers than the plan's no total is given: it would be that of the plan.
        """
        flags = self.version.flags
        yield Check(
            "documents",
            "read the version's archive, or drew the plan's sample",
            f"Give them: {DRIVER} preflight {flags} --corpus-path PATH",
            self._documents,
        )
        yield Check(
            "chunks",
            "chunked the documents by every chunker asked for",
            "Mend that chunker or the source's reader, or take another chunker into the plan: docs/chunking.md.",
            self._chunks,
        )
        yield Check(
            "queries",
            "read queries.yaml, and looked for the documents that queries came from",
            f"{DRIVER} queries sample {flags}; then {DRIVER} queries add {flags} FILE",
            self._queries,
        )
        yield Check(
            "git",
            "asked whether it holds plan, queries and labels",
            f"git add {display(self.version.folder)}, and commit: a decision that rests on one disk goes with it.",
            self._git,
        )
        asked = replace(self.asked, documents=[len(document.text) for document in self.drawn])
        yield from self._rerankers(
            "looked where its weights are, or for its pinned revision at the model hub", self._reranker
        )
        evening = Preflight(self.version, self.plan, self.backend, asked, self.plan.cells).checks()
        yield from (check for check in evening if check.name != "total" or not self.chunkers)

    def trials(self) -> Iterator[Check]:
        """Each encoder by 32 texts and each judge by one pair, in earnest: what rents or charges is paid for."""
        day = today()
        for name in self._encoders:
            yield Check(
                f"32 texts with {name}",
                "embedded them as a run does: weights, probe, every check of rows",
                "Embed nothing there until this passes; compare the server's model, prompts and limits.",
                partial(smoked, self.backend, name, day),
            )
        yield from self._rerankers("had it score a pair, here as a run does", self._scored)
        for judge in self._judges:
            yield Check(
                f"one pair by {judge.model}",
                "had it graded as a run does; the grade is not kept",
                "Name another model in the plan, or mend what the message says.",
                partial(self._graded, judge),
            )

    def trials_usd(self) -> float:
        """About what the trials cost by list price, if every container idles as long as it may."""
        rented, own = self.backend.rented, self.plan.own
        paid = [name for name in self._encoders if rented or catalog.encoder(name, own).service]
        tokens = {name: TokenCount(n_tokens(self.backend.encoder(name)), "counted") for name in paid}
        services = service_usd(tokens, own)
        usd = sum(services.values())
        if rented is not None:
            elsewhere = {name: count for name, count in tokens.items() if name not in services}
            usd += estimate(elsewhere, rented, all_sessions(self.version.work)).usd
        return usd + (0.0 if self.asked.judge is None else trial_usd(self.version, self.plan, self.asked.judge))

    def _rerankers(self, did: str, look: Callable[[str], str]) -> Iterator[Check]:
        """A check for each cross-encoder of the plan."""
        cells = [parse_cell(cell) for cell in self.plan.cells]
        for name in sorted({cell.model for cell in cells if isinstance(cell, CrossCell)}):
            advice = without_advice(self.version, name)
            yield Check(f"re-ranker {name}", did, advice, partial(look, name))

    @property
    def _encoders(self) -> list[str]:
        cells = [parse_cell(cell) for cell in self.plan.cells]
        return sorted({cell.encoder for cell in cells if not isinstance(cell, WITHOUT_VECTORS)})

    @property
    def _judges(self) -> list[JudgeSpec]:
        if self.asked.judge is None:
            return []
        return [judge for judge in named_judges(self.version, self.plan).each if not judge.by_file]

    def _reranker(self, name: str) -> str:
        spec = catalog.reranker(name)
        if is_here(spec, FILES):
            return "on this machine"
        hub_has(spec)
        return f"at the model hub, revision {spec.revision[:12]}; {size(name).weights_gb:.1f} GB to download"

    def _scored(self, name: str) -> str:
        (score,) = reranker_for(name).score([("a fee", "The fee is $1,250 a berth.")])
        return f"one pair scored {score:.2f}"

    def _graded(self, judge: JudgeSpec) -> str:
        assert self.asked.judge is not None, "only then a judge is asked"
        return f"it answered in the form that is asked for: grade {ask_once(self.version, judge, self.asked.judge)}"

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

    def _chunks(self) -> str:
        if not self.drawn:
            raise Skipped("there are no documents")
        cells = [parse_cell(cell) for cell in self.plan.cells]
        specs = [catalog.encoder(name, self.plan.own) for name in self._encoders]
        here = [spec for spec in specs if spec.service is None and is_here(spec)]
        common = boilerplate_share(self.drawn)
        names = dict.fromkeys(self.chunkers or [cell.chunker for cell in cells])
        self.rows = [_row(name, self.drawn, here, common) for name in names]
        said = [f"{len(self.rows)} chunkers", *(line for row in self.rows for line in _lines(row))]
        if absent := [spec.name for spec in specs if spec not in here]:
            said.append(f"tokenizers that are not on this machine: {', '.join(absent)}")
        if bad := [row.chunker for row in self.rows if row.health.degenerate]:
            raise NegativeVerdict("\n".join([f"degenerate: {', '.join(bad)}", *said[1:]]))
        return "\n".join(said)

    def _queries(self) -> str:
        if not self.version.queries_path.exists():
            raise InputError("none are written yet")
        queries = load_queries(self.version.queries_path)
        if problem := query_count_problem(len(queries)):
            raise InputError(problem)
        doubts = missing_documents(self.version) if self.version.corpus_path.exists() else []
        return "\n".join([f"{len(queries)}", *doubts])

    def _git(self) -> str:
        version = self.version
        state = git_state(next(path for path in (version.folder, *version.folder.parents) if path.exists()))
        if "error" in state:
            raise Skipped(str(state["error"]))
        kept = (version.plan_path(rehearsal=version.rehearsal), version.queries_path, version.labels_path)
        if loose := untracked(kept):
            raise InputError(f"not tracked: {', '.join(path.name for path in loose)}")
        changed = "; some files have changes that are not committed" if state["dirty"] else ""
        return f"{str(state['commit'])[:12]} on {state['branch']}{changed}"


def _row(name: str, documents: Sequence[Document], encoders: Sequence[EncoderSpec], common: float) -> ChunkerRow:
    chunks = chunk_corpus(documents, name)
    by_id = {document.doc_id: document for document in documents}
    texts = list(dict.fromkeys(chunk.reading(by_id[chunk.doc_id]) for chunk in chunks))
    counted = tuple(_tokens(encoder, texts) for encoder in encoders)
    return ChunkerRow(name, chunk_health(chunks, documents, limit_of(name), common), counted)


def _tokens(spec: EncoderSpec, texts: Sequence[str]) -> EncoderTokens:
    counts = encoder_class(spec.name)(spec).token_counts(texts, "document")
    p50, p95 = np.percentile(counts, [50, 95], method="inverted_cdf").astype(int).tolist()
    limit = spec.max_tokens
    lost = int(np.maximum(counts - limit, 0).sum()) / int(counts.sum()) if limit else 0.0
    return EncoderTokens(spec.name, p50, p95, int(counts.max()), lost)


def _lines(row: ChunkerRow) -> list[str]:
    """A line for a chunker, and one below it per encoder and per problem."""
    health = row.health
    return [
        f"{row.chunker}: {health.count} chunks, tokens p50 {health.tokens_p50}, p95 {health.tokens_p95}, most "
        f"{health.tokens_max}; empty {health.empty}, repeated {health.duplicate_share:.1%}, covered "
        f"{health.coverage:.2%}, outside sections {health.outside_sections_share:.1%}, boilerplate "
        f"{health.boilerplate_share:.1%}",
        *(
            f"  {c.encoder}: tokens p50 {c.p50}, p95 {c.p95}, most {c.most}; never read {c.lost:.1%}"
            for c in row.encoders
        ),
        *(f"  DEGENERATE: {problem}" for problem in health.degenerate),
    ]


def chunks_data(rows: Sequence[ChunkerRow]) -> JSON:
    """The health of chunks for JSON."""
    return [
        {"chunker": row.chunker, "health": row.health.model_dump(), "encoders": [asdict(c) for c in row.encoders]}
        for row in rows
    ]
