"""What embedding on rented machines would cost, before anything starts: no network, no encoder, nothing written."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from runner.embed.cost.container_pool import IDLE_SECONDS
from runner.embed.cost.ledger import BudgetError, LedgerRow
from runner.embed.cost.options import RemoteOptions
from runner.embed.cost.planned_tokens import TokenCount
from runner.embed.cost.prices import shown, weights_price
from runner.embed.cost.throughput import Rate, rate, size

START_SECONDS = 60.0
"""To start a container, load the model and probe it; nothing is read meanwhile, and it is billed."""

_DOWNLOAD_GB_PER_SECOND = 0.04


@dataclass(frozen=True)
class EncoderEstimate:
    """One encoder's part; `seconds` are container-seconds, starting and idling included."""

    encoder: str
    planned: TokenCount
    rate: Rate
    seconds: float
    embedding_usd: float
    weights_usd: float

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
    """What is left to do would cost this much by list price."""

    encoders: tuple[EncoderEstimate, ...]
    remote: RemoteOptions

    @property
    def embedding_usd(self) -> float:
        """Dollars of embedding."""
        return sum(each.embedding_usd for each in self.encoders)

    @property
    def weights_usd(self) -> float:
        """Dollars of downloading weights, once an encoder."""
        return sum(each.weights_usd for each in self.encoders)

    @property
    def usd(self) -> float:
        """Dollars of everything."""
        return self.embedding_usd + self.weights_usd

    def lines(self, spent: float) -> list[str]:
        """A line an encoder, and the sum against the ceiling; `spent` is what earlier attempts cost."""
        remote, side, verdict = self.remote, "over", "be refused"
        if self.is_affordable(spent):
            side, verdict = "within", "start"
        return [
            *(each.line for each in self.encoders),
            f"cost: {shown(self.embedding_usd)} for embedding on {remote.gpu} (${remote.price:.6f} a container-second, "
            f"{remote.price_source}) and {shown(self.weights_usd)} for downloading weights; "
            f"{shown(spent)} spent before; {side} --max-usd {shown(remote.max_usd)[1:]}, so it would {verdict}",
        ]

    def is_affordable(self, spent: float) -> bool:
        """Whether the ceiling holds, by this estimate, after what was spent before; whatever that was, for nothing."""
        return not self.encoders or spent + self.usd <= self.remote.max_usd


def estimate(planned: Mapping[str, TokenCount], remote: RemoteOptions, sessions: Collection[LedgerRow]) -> Estimate:
    """The dollars that reading so many tokens takes; `sessions` are earlier ones, which may have measured a rate.

    Every container that may start is taken to start, to share the work evenly, and to idle at the end until it is let
    go: while the work lasts all of them are charged.
    """
    here = {row.what for row in sessions if row.kind == "weights" and row.ended}
    parts = []
    for encoder, count in planned.items():
        if not count.tokens:
            continue
        pace = rate(encoder, remote.gpu, sessions)
        seconds = count.tokens / pace.tokens_per_second + remote.containers * (START_SECONDS + IDLE_SECONDS)
        weights = 0.0 if encoder in here else _download_seconds(encoder) * weights_price()
        parts.append(EncoderEstimate(encoder, count, pace, seconds, seconds * remote.price, weights))
    return Estimate(tuple(parts), remote)


def check_affordable(expected: Estimate, spent: float) -> None:
    """Nothing where the ceiling holds after what was spent before; else a BudgetError, before anything starts."""
    if expected.is_affordable(spent):
        return
    figures = "\n".join(expected.lines(spent))
    raise BudgetError(
        f"Embedding would cost more than is allowed, and nothing was started.\n{figures}\nAllow more with "
        f"--max-usd {_next_cents(spent + expected.usd):.2f}, or take another --gpu."
    )


def _download_seconds(encoder: str) -> float:
    return START_SECONDS + size(encoder).weights_gb / _DOWNLOAD_GB_PER_SECOND


def _next_cents(usd: float) -> float:
    """The next amount of whole cents that is enough."""
    return (int(usd * 100) + 1) / 100
