"""What a version has left to pay for, before anything starts: from stored chunks or else from characters.

Nothing is started, asked or written.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chunkers.registry import limit_of
from runner.base.progress import duration
from runner.base.records import WITHOUT_VECTORS, parse_cell
from runner.embed.cost.ledger import BudgetError, Entry
from runner.embed.cost.prices import CORES, CPU, GPUS, PRICE_SOURCE, RemoteOptions, known_gpu, shown, weights_price
from runner.embed.cost.rental import IDLE_SECONDS
from runner.eval_set.catalog import ENCODERS, NO_OWN, RERANKERS, EncoderSpec
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


class Estimate(NamedTuple):
    """What one part of an evening would cost: lines for whoever asks, dollars, and what is held at once beyond them."""

    lines: list[str]
    usd: float = 0.0
    held: float = 0.0


@dataclass(frozen=True)
class Corpus:
    """What is known of a version's texts: characters per document and of all queries, and chunks counted already."""

    document_chars: Sequence[int]
    query_chars: int
    stored: Callable[[str, int], int | None]
    """Tokens of a chunker's stored chunks, each cut at a limit (0 for none); None if it has none."""


def planned_tokens(
    cells: Sequence[str],
    baseline: str,
    corpus: Corpus,
    current: Collection[str],
    own: Mapping[str, EncoderSpec] = NO_OWN,
) -> dict[str, TokenCount]:
    """Return what each encoder of the cells, the plan's `own` among them, has to read beside the `current` cells.

    Cells of one encoder and chunker share their vectors. The baseline is embedded once more, in other batches, unless
    it is "" or NOISE_FLOOR_CELL is current. From characters, only whole documents are cut at the encoder's limit.
    """
    parsed = {cell: parsed for cell in cells if not isinstance(parsed := parse_cell(cell), WITHOUT_VECTORS)}
    done = {(parsed[cell].encoder, parsed[cell].chunker) for cell in current if cell in parsed}
    wanted = {(cell.encoder, cell.chunker): 1 for cell in parsed.values() if (cell.encoder, cell.chunker) not in done}
    # The A/A run embeds the baseline once more.
    if baseline in parsed and NOISE_FLOOR_CELL not in current:
        pair = parsed[baseline].encoder, parsed[baseline].chunker
        wanted[pair] = wanted.get(pair, 0) + 1
    planned: dict[str, TokenCount] = {}
    for encoder in sorted({encoder for encoder, _ in wanted}):
        # Chunks by chunker; queries once for every time that the encoder's vectors are made.
        most = known_encoder(encoder, own).max_tokens
        parts = [(_tokens(most, chunker, corpus), n) for (who, chunker), n in wanted.items() if who == encoder]
        queries = corpus.query_chars // CHARACTERS_PER_TOKEN * max(n for _, n in parts)
        sources = {part.source for part, _ in parts}
        source = sources.pop() if len(sources) == 1 else "chunks in part, characters"
        planned[encoder] = TokenCount(queries + sum(part.tokens * n for part, n in parts), source)
    return planned


def _tokens(most: int, chunker: str, corpus: Corpus) -> TokenCount:
    """Return the tokens of one chunker's chunks, each cut at `most` if it is not 0, counted or from characters."""
    if (stored := corpus.stored(chunker, most)) is not None:
        return TokenCount(stored, "counted chunks")
    narrow = limit_of(chunker)
    # How often a chunk holds a token of the text, on the average.
    if match := re.match(r"fixed_token_(\d+)_(\d+)", chunker):
        share = int(match[1]) / (int(match[1]) - int(match[2]))
    else:
        share = 1.0 if not narrow else NARROW_SHARE if narrow == 256 else STRUCTURE_SHARE
    limit = 0 if narrow else most
    tokens = sum(min(chars / CHARACTERS_PER_TOKEN, limit or chars) for chars in corpus.document_chars)
    return TokenCount(round(tokens * share), "from characters")


# On this machine

LOCAL_GFLOP_PER_SECOND = 150.0
"""What two cores of a shared EPYC (AVX2, no GPU) reach with MiniLM over full chunks; taken until a cell is measured."""


def size(encoder: str) -> EncoderSpec:
    """Return the row that says how large an encoder is; of a name without one, the catalog's largest."""
    return (ENCODERS | RERANKERS).get(encoder, ENCODERS["arctic-l-v2.0"])


def local_seconds(planned: Mapping[str, TokenCount], measured: float | None) -> float:
    """Return how long it takes to embed what is left here, at the measured GFLOP per second or a default."""
    gflop = sum(count.tokens * size(encoder).gflop_per_token for encoder, count in planned.items())
    return gflop / (measured or LOCAL_GFLOP_PER_SECOND)


def local_line(planned: Mapping[str, TokenCount], measured: float | None) -> str:
    """Return `local_seconds` in words, and what they rest on."""
    tokens = sum(count.tokens for count in planned.values())
    if not tokens:
        return "time: nothing is left to embed"
    origin = "as measured here" if measured else "a guess for two cores, until a cell is measured"
    pace = measured or LOCAL_GFLOP_PER_SECOND
    sources = " and ".join(dict.fromkeys(count.source for count in planned.values() if count.tokens))
    took = duration(local_seconds(planned, measured))
    return f"time: {took} to embed {tokens:,} tokens ({sources}) here ({pace:,.0f} GFLOP/s, {origin})"


# By services, at the plan's own price


def of_services(planned: Mapping[str, TokenCount], own: Mapping[str, EncoderSpec]) -> Estimate:
    """Return what the services of a plan have to read, a line each and their sum; nothing if it names none."""
    lines, usd = [], 0.0
    for name, count in planned.items():
        if name in own and own[name].api:
            service = own[name]
            dollars = count.tokens * service.usd_per_million_tokens / 1e6
            usd += dollars
            lines.append(
                f"  {name}: {count.tokens:,} tokens of cl100k_base ({count.source}) sent to {service.url} at "
                f"${service.usd_per_million_tokens:g} a million, as the plan has it: {shown(dollars)}"
            )
    return Estimate([*lines, f"cost: {shown(usd)} for embedding by services"] if lines else [], usd)


# On rented machines

UTILISATION = 0.3
"""Share of the peak that encoders reach: batches are padded, and an L4 throttles at 72 W long before its peak."""

_CORE_GFLOPS = 15
"""Single precision, of one rented core."""

CEILING = 100_000
"""No default is above this: one core's tokeniser and the way back of the rows then hold up the device."""

START_SECONDS = 60.0
"""To start a container, load the model and probe it; nothing is read meanwhile, and it is billed."""

_DOWNLOAD_GB_PER_SECOND = 0.04


def rate(encoder: str, gpu: str) -> float:
    """Return the tokens a second of one container, by the encoder's arithmetic and the device's peak."""
    name = known_gpu(gpu)
    gflops = CORES["cpu"] * _CORE_GFLOPS if name == CPU else 1000 * UTILISATION * GPUS[name].peak_tflops
    needed = size(encoder).gflop_per_token
    return min(CEILING, gflops / needed) if needed else CEILING


def of_rented(planned: Mapping[str, TokenCount], remote: RemoteOptions, entries: Collection[Entry]) -> Estimate:
    """Return what reading so many tokens costs, weights included, unless `entries` have fetched them.

    Every container that may start is taken to start, to share the work evenly, and to idle at the end. Nothing is said
    where nothing is left to read.
    """
    fetched = {entry.what for entry in entries if entry.kind == "weights" and entry.ended}
    lines, usd, clock = [], 0.0, 0.0
    for encoder, count in planned.items():
        if not count.tokens:
            continue
        pace = rate(encoder, remote.gpu)
        # Work is shared, but every container starts and idles for itself.
        reading = count.tokens / pace
        seconds = reading + remote.containers * (START_SECONDS + IDLE_SECONDS)
        download = 0.0 if encoder in fetched else START_SECONDS + size(encoder).weights_gb / _DOWNLOAD_GB_PER_SECOND
        dollars = seconds * remote.price + download * weights_price()
        lines.append(
            f"  {encoder}: {count.tokens:,} tokens ({count.source}) at {pace:,.0f} tokens/s (a guess): {seconds:,.0f} "
            f"container-seconds{' and its weights' if download else ''}, {shown(dollars)}"
        )
        usd += dollars
        # One encoder after the other, each in all its containers at once.
        clock += download + START_SECONDS + reading / remote.containers
    if lines:
        lines += [
            f"cost: {shown(usd)} for embedding on {remote.gpu} (${remote.price:.6f} a container-second, "
            f"{PRICE_SOURCE}), weights included",
            f"time: {duration(clock)} by these figures, {remote.containers} containers at once",
        ]
    return Estimate(lines, usd)


HEADROOM = 0.1
"""Of what embedding and judging are estimated at: texts are counted in another tokenizer's tokens."""


@dataclass(frozen=True)
class Total:
    """All that one ceiling has to hold until the decision, in dollars by list price.

    `embedding` is by services and on rented machines, `held` what judging sets aside at once beyond its likely cost.
    """

    max_usd: float
    spent: float = 0.0
    embedding: float = 0.0
    judging: float = 0.0
    held: float = 0.0

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
        enough = (int((self.spent + self.usd) * 100) + 1) / 100
        figures = "\n".join((*lines, self.line))
        raise BudgetError(
            f"What is left would cost more than is allowed, and nothing was started.\n{figures}\nAllow "
            f"--max-usd {enough:.2f} or more, or ask for less: another --gpu, less evidence (`chars` in plan.yaml), a "
            "cheaper judge, fewer queries."
        )
