"""What language models cost per token: a dated table."""

import json
import math
from typing import NamedTuple, Self

from runner.base.errors import InputError
from runner.eval_set.plan import undated
from runner.judge.models.requests import Ask, Usage

PRICE_FLAG = "--judge-price"
PRICE_SOURCE = "list price, second-hand, 2026-10-24"
"""Anthropic's list prices as stored copies of its pricing page have them, and as two tools that follow it printed them
(synaps 0.10.2, 2026-10-10; claudit 1.9.2, 2026-10-24); they agree."""

LONG_PROMPT = 100_000
"""Tokens from which a prompt counts as long, where that has a price of its own."""

CACHE_WRITE = 1.25
BATCH_SHARE = 0.5
"""What a request costs in a message batch, of its price alone."""

FORM_TOKENS = 600
"""What a request may hold beside its texts and schema: the service's own words about them."""

LIKELY_BYTES = 3.5
LIKELY_WRITTEN = 150
"""Bytes of English a token as a rule (tokenizers of 2026 cut it 30 % finer), and tokens of a judgment."""


class Price(NamedTuple):
    """Dollars per million tokens read and written; `cached` is a cached token's share of one read.

    `long` multiplies the whole request if its prompt is longer than LONG_PROMPT.
    """

    read: float
    written: float
    cached: float = 0.1
    long: float = 1.0
    source: str = PRICE_SOURCE

    @property
    def is_free(self) -> bool:
        """Whether nothing is charged."""
        return not (self.read or self.written)

    def in_batches(self) -> Self:
        """Return the price of the same in a message batch."""
        return self._replace(read=self.read * BATCH_SHARE, written=self.written * BATCH_SHARE)

    def usd(self, usage: Usage) -> float:
        """Return the dollars of one request."""
        prompt = usage.read + usage.cache_written + usage.cache_read
        read = self.read * (usage.read + CACHE_WRITE * usage.cache_written + self.cached * usage.cache_read)
        factor = self.long if prompt > LONG_PROMPT else 1.0
        return factor * (read + self.written * usage.written) / 1e6

    def worst_usd(self, ask: Ask) -> float:
        """Return the dollars that one request costs at most: its whole prompt written to the cache, the longest answer.

        Every byte counts as a token, the most that any tokenizer makes of a text: tables of digits come near it.
        """
        tokens = _n_bytes(ask) + len(json.dumps(dict(ask.schema))) + FORM_TOKENS
        return self.usd(Usage(cache_written=tokens, written=ask.max_tokens))


FREE = Price(0.0, 0.0, source="a server of one's own")
BY_FILE = Price(0.0, 0.0, source="answers by file")

CLAUDE: dict[str, Price] = {
    "claude-fable-5-1": Price(10, 50, 0.025),
    "claude-mythos-5-1": Price(10, 50, 0.025),
    "claude-fable-5": Price(10, 50),
    "claude-mythos-5": Price(10, 50),
    "claude-opus-5-5": Price(4, 20, 0.05),
    "claude-opus-5": Price(5, 25),
    "claude-opus-4-8": Price(5, 25),
    "claude-opus-4-7": Price(5, 25),
    "claude-opus-4-6": Price(5, 25),
    "claude-opus-4-5": Price(5, 25),
    "claude-sonnet-5-5": Price(2, 10, 0.05),
    "claude-sonnet-5": Price(2, 10),
    "claude-sonnet-4-6": Price(3, 15),
    "claude-sonnet-4-5": Price(3, 15),
    "claude-haiku-5-5": Price(0.10, 0.50, long=5.0),
    "claude-haiku-4-5": Price(1, 5),
}
"""By the id without its date."""


def price_of(model: str) -> Price:
    """Return the table's price of a Claude model; an InputError for one that it does not have."""
    price = CLAUDE.get(undated(model))
    if price is None:
        raise InputError(
            f"No price is known for {model!r}. Known are {', '.join(CLAUDE)}; give what another costs as "
            f"{PRICE_FLAG} IN,OUT, in dollars a million tokens read and written, such as {PRICE_FLAG} 3,15."
        )
    return price


def given_price(text: str) -> Price:
    """Return the price that an operator gives as IN,OUT, cached tokens at a tenth; an InputError for any other text."""
    try:
        read, written = (float(part) for part in text.split(","))
    except ValueError:
        read = written = math.nan
    if not (math.isfinite(read) and math.isfinite(written) and read >= 0 and written >= 0):
        raise InputError(
            f"{PRICE_FLAG} {text!r}: two numbers are needed, dollars a million tokens read and written, such as 3,15."
        )
    return Price(read, written, source=PRICE_FLAG)


def _n_bytes(ask: Ask) -> int:
    return len(ask.system.encode()) + len(ask.user.encode())
