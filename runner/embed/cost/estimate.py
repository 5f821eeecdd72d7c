"""What embedding a matrix of cells would cost on rented machines, from stored chunks or else from characters.

Nothing is started, asked or written.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chunkers.registry import limit_of
from runner.base.progress import duration
from runner.base.records import RUN_DEPTH, WITHOUT_VECTORS, CrossCell, parse_cell
from runner.embed.cost.budget import IDLE_SECONDS
from runner.embed.cost.ledger import BudgetError, LedgerRow
from runner.embed.cost.prices import PRICE_SOURCE, Rate, RemoteOptions, rate, shown, size, weights_price
from runner.eval_set.catalog import NO_OWN, RERANKERS, EncoderSpec
from runner.eval_set.catalog import encoder as known_encoder
from runner.eval_set.version import NOISE_FLOOR_CELL

CHARACTERS_PER_TOKEN = 4

STRUCTURE_SHARE = 1.1
"""Tokens of a structural chunker's chunks over those of the text: context comes before every chunk.

Counted over nine sources (up to 25 documents each, cl100k_base), chunkers needed 0.75 to 1.32 times what is said here.
"""

NARROW_SHARE = 1.3
"""The same if chunks are cut further at 256 tokens: more of them, each with its context. Counted over eleven sources
(up to 4 million characters each), it was 0.72 to 1.13 times this.
"""


class TokenCount(NamedTuple):
    """Tokens that an encoder has to read, and where the figure is from."""

    tokens: int
    source: str


@dataclass(frozen=True)
class Corpus:
    """What is known of a version's texts: characters per document and of all queries, and chunks counted already."""

    document_chars: Sequence[int]
    query_chars: int
    stored: Callable[[str, int], int | None]
    """Tokens of a chunker's stored chunks, each cut at a limit (0 for none); None if it has none."""
    n_queries: int = 0


def planned_tokens(
    cells: Sequence[str],
    baseline: str,
    corpus: Corpus,
    current: Collection[str],
    own: Mapping[str, EncoderSpec] = NO_OWN,
) -> dict[str, TokenCount]:
    """What each encoder of the cells, the plan's `own` among them, still has to read; `current` cells are left out.

    Cells of one encoder and chunker share their vectors. The baseline is embedded once more, in other batches, unless
    it is "" or NOISE_FLOOR_CELL is current. From characters, only whole documents are cut at the encoder's limit.
    """
    parsed = {cell: parsed for cell in cells if not isinstance(parsed := parse_cell(cell), WITHOUT_VECTORS)}
    done = {(parsed[cell].encoder, parsed[cell].chunker) for cell in current if cell in parsed}
    wanted = {(cell.encoder, cell.chunker): 1 for cell in parsed.values() if (cell.encoder, cell.chunker) not in done}
    if baseline in parsed and NOISE_FLOOR_CELL not in current:
        pair = parsed[baseline].encoder, parsed[baseline].chunker
        wanted[pair] = wanted.get(pair, 0) + 1
    planned: dict[str, TokenCount] = {}
    for encoder in sorted({encoder for encoder, _ in wanted}):
        most = known_encoder(encoder, own).max_tokens
        parts = [(_tokens(most, chunker, corpus), n) for (who, chunker), n in wanted.items() if who == encoder]
        queries = corpus.query_chars // CHARACTERS_PER_TOKEN * max(n for _, n in parts)
        sources = {part.source for part, _ in parts}
        source = sources.pop() if len(sources) == 1 else "chunks in part, characters"
        planned[encoder] = TokenCount(queries + sum(part.tokens * n for part, n in parts), source)
    return planned


def _tokens(most: int, chunker: str, corpus: Corpus) -> TokenCount:
    """Tokens of one chunker's chunks, each cut at `most` if it is not 0, counted or from characters."""
    if (stored := corpus.stored(chunker, most)) is not None:
        return TokenCount(stored, "counted chunks")
    limit = most if not limit_of(chunker) else 0
    tokens = sum(min(chars / CHARACTERS_PER_TOKEN, limit or chars) for chars in corpus.document_chars)
    return TokenCount(round(tokens * _overlap(chunker)), "from characters")


def _overlap(chunker: str) -> float:
    """How often a chunker's chunks hold a token of the text, on the average."""
    if match := re.match(r"fixed_token_(\d+)_(\d+)", chunker):
        return int(match[1]) / (int(match[1]) - int(match[2]))
    if not limit_of(chunker):
        return 1.0
    return NARROW_SHARE if limit_of(chunker) == 256 else STRUCTURE_SHARE


def reranked_tokens(cells: Sequence[str], corpus: Corpus, current: Collection[str]) -> dict[str, TokenCount]:
    """What each cross-encoder of the cells still has to read: at most RUN_DEPTH full chunks a query, each with the
    query before it.
    """
    planned: dict[str, TokenCount] = {}
    depth = min(RUN_DEPTH, len(corpus.document_chars))
    for cell in (parse_cell(cell) for cell in cells if cell not in current):
        if isinstance(cell, CrossCell):
            longest = limit_of(cell.chunker) or max(corpus.document_chars, default=0) // CHARACTERS_PER_TOKEN
            chunk = min(longest, RERANKERS[cell.model].max_tokens)
            tokens = depth * (corpus.n_queries * chunk + corpus.query_chars // CHARACTERS_PER_TOKEN)
            so_far = planned[cell.model].tokens if cell.model in planned else 0
            planned[cell.model] = TokenCount(so_far + tokens, f"{depth} full chunks a query")
    return planned


def rerank_lines(planned: Mapping[str, TokenCount], measured: float | None) -> list[str]:
    """How long re-ranking takes on this machine at most, a line per model; it runs here whatever embeds."""
    pace = measured or LOCAL_GFLOP_PER_SECOND
    return [
        f"re-ranking: {duration(count.tokens * size(model).gflop_per_token / pace)} at most for {model} to read "
        f"{count.tokens:,} tokens here ({count.source}); {size(model).weights_gb:g} GB of weights, once"
        for model, count in planned.items()
    ]


LOCAL_GFLOP_PER_SECOND = 150.0
"""What two cores of a shared EPYC (AVX2, no GPU) reach with MiniLM over full chunks; taken until a cell is measured."""


def local_line(planned: Mapping[str, TokenCount], measured: float | None) -> str:
    """How long it takes to embed what is left on this machine, at the measured GFLOP per second or a default."""
    tokens = sum(count.tokens for count in planned.values())
    if not tokens:
        return "time: nothing is left to embed"
    gflop = sum(count.tokens * size(encoder).gflop_per_token for encoder, count in planned.items())
    origin = "as measured here" if measured else "a guess for two cores, until a cell is measured"
    pace = measured or LOCAL_GFLOP_PER_SECOND
    sources = " and ".join(dict.fromkeys(count.source for count in planned.values() if count.tokens))
    return f"time: {duration(gflop / pace)} to embed {tokens:,} tokens ({sources}) here ({pace:,.0f} GFLOP/s, {origin})"


def service_usd(planned: Mapping[str, TokenCount], own: Mapping[str, EncoderSpec]) -> dict[str, float]:
    """Dollars by each service's own price of what it still has to read; without encoders that are no service's."""
    priced = {name: own[name] for name in planned if name in own and own[name].api}
    return {name: planned[name].tokens * service.usd_per_million_tokens / 1e6 for name, service in priced.items()}


def service_lines(planned: Mapping[str, TokenCount], own: Mapping[str, EncoderSpec]) -> list[str]:
    """A line a service, and their sum; none if the plan names no service."""
    usd = service_usd(planned, own)
    if not usd:
        return []
    lines = []
    for name, dollars in usd.items():
        service, count = own[name], planned[name]
        lines.append(
            f"  {name}: {count.tokens:,} tokens of cl100k_base ({count.source}) sent to {service.url} at "
            f"${service.usd_per_million_tokens:g} a million, as the plan has it: {shown(dollars)}"
        )
    return [*lines, f"cost: {shown(sum(usd.values()))} for embedding by services"]


START_SECONDS = 60.0
"""To start a container, load the model and probe it; nothing is read meanwhile, and it is billed."""

_DOWNLOAD_GB_PER_SECOND = 0.04


@dataclass(frozen=True)
class EncoderEstimate:
    """One encoder's part.

    `seconds` are container-seconds, starting and idling included, `reading` those of work; `download` is how long its
    weights take before that, 0 if they are there.
    """

    encoder: str
    planned: TokenCount
    rate: Rate
    seconds: float
    reading: float
    embedding_usd: float
    download: float

    @property
    def weights_usd(self) -> float:
        """Dollars of downloading its weights."""
        return self.download * weights_price()

    @property
    def line(self) -> str:
        """As a dry run shows it."""
        return (
            f"  {self.encoder}: {self.planned.tokens:,} tokens ({self.planned.source}) at "
            f"{self.rate.tokens_per_second:,.0f} tokens/s ({self.rate.label}): {self.seconds:,.0f} container-seconds, "
            f"{shown(self.embedding_usd)}"
        )


@dataclass(frozen=True)
class Estimate:
    """What it would cost by list price to do what is left."""

    encoders: tuple[EncoderEstimate, ...]
    remote: RemoteOptions

    @property
    def embedding_usd(self) -> float:
        """Dollars of embedding."""
        return sum(each.embedding_usd for each in self.encoders)

    @property
    def weights_usd(self) -> float:
        """Dollars of downloading weights, once per encoder."""
        return sum(each.weights_usd for each in self.encoders)

    @property
    def usd(self) -> float:
        """Dollars of everything."""
        return self.embedding_usd + self.weights_usd

    @property
    def seconds(self) -> float:
        """By the clock: one encoder after the other, each in all its containers at once."""
        return sum(each.download + START_SECONDS + each.reading / self.remote.containers for each in self.encoders)

    @property
    def lines(self) -> list[str]:
        """A line per encoder, the sum, and how long it takes."""
        remote = self.remote
        return [
            *(each.line for each in self.encoders),
            f"cost: {shown(self.embedding_usd)} for embedding on {remote.gpu} (${remote.price:.6f} a container-second, "
            f"{PRICE_SOURCE}) and {shown(self.weights_usd)} for downloading weights",
            f"time: {duration(self.seconds)} by these figures, {remote.containers} containers at once",
        ]


HEADROOM = 0.1
"""Of what embedding and judging are estimated at: texts are counted in another tokenizer's tokens."""


@dataclass(frozen=True)
class Total:
    """All that one ceiling has to hold until the decision, in dollars by list price."""

    max_usd: float
    spent: float = 0.0
    embedding: float = 0.0
    """By services and on rented machines, weights included."""
    judging: float = 0.0
    held: float = 0.0
    """What judging sets aside at once beyond what it is likely to cost."""

    @property
    def headroom(self) -> float:
        """What an estimate may be wrong by, and what is held for requests under way."""
        return HEADROOM * (self.embedding + self.judging) + self.held

    @property
    def usd(self) -> float:
        """Dollars of what is left, headroom included."""
        return self.embedding + self.judging + self.headroom

    @property
    def is_affordable(self) -> bool:
        """Whether what is left would end within the ceiling; always if nothing is left to pay."""
        return not self.usd or self.spent + self.usd <= self.max_usd

    @property
    def line(self) -> str:
        """The sum against the ceiling, and what a run would do."""
        side, verdict = ("within", "start") if self.is_affordable else ("over", "be refused")
        return (
            f"total: {shown(self.embedding)} embedding + {shown(self.judging)} judging + {shown(self.headroom)} "
            f"headroom = {shown(self.usd)}, {shown(self.spent)} spent before; {side} --max-usd "
            f"{shown(self.max_usd)[1:]}, so it would {verdict}"
        )

    def check(self, lines: Sequence[str] = ()) -> None:
        """Raise BudgetError, before anything starts, unless the ceiling holds it; `lines` say where the sum is from."""
        if self.is_affordable:
            return
        figures = "\n".join((*lines, self.line))
        raise BudgetError(
            f"What is left would cost more than is allowed, and nothing was started.\n{figures}\nAllow "
            f"--max-usd {next_cents(self.spent + self.usd):.2f} or more, or ask for less: another --gpu, a cheaper "
            "judge, fewer queries."
        )


def estimate(planned: Mapping[str, TokenCount], remote: RemoteOptions, sessions: Collection[LedgerRow]) -> Estimate:
    """The dollars for reading so many tokens; `sessions` are earlier ones, which may have measured a rate.

    Every container that may start is taken to start, to share the work evenly, and to idle at the end.
    """
    here = {row.what for row in sessions if row.kind == "weights" and row.ended}
    parts = []
    for encoder, count in planned.items():
        if not count.tokens:
            continue
        pace = rate(encoder, remote.gpu, sessions)
        reading = count.tokens / pace.tokens_per_second
        seconds = reading + remote.containers * (START_SECONDS + IDLE_SECONDS)
        download = 0.0 if encoder in here else _download_seconds(encoder)
        parts.append(EncoderEstimate(encoder, count, pace, seconds, reading, seconds * remote.price, download))
    return Estimate(tuple(parts), remote)


def _download_seconds(encoder: str) -> float:
    return START_SECONDS + size(encoder).weights_gb / _DOWNLOAD_GB_PER_SECOND


def next_cents(usd: float) -> float:
    """The next amount of whole cents that is enough."""
    return (int(usd * 100) + 1) / 100
