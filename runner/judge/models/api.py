"""The language model that a plan names, opened."""

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Literal

from runner.base.errors import InputError
from runner.base.http_client import is_own
from runner.base.progress import say
from runner.embed.cost import MAX_USD
from runner.embed.cost.ledger import SPEND, Budget
from runner.embed.cost.prices import BY_FILE, FREE, PRICE_FLAG, Price, price_of
from runner.eval_set.shapes.labels import JudgeSpec
from runner.judge.models.claude import ClaudeMessages
from runner.judge.models.claude_batches import ClaudeBatches
from runner.judge.models.client import JudgeClient, Way, judge_address
from runner.judge.models.openai_chat import OpenAIChat

BATCH_TIMEOUT = 300.0
"""Seconds that handing in a message batch, or fetching its results, may take."""

RECORDS = Path("judging", "message-batches")
"""Where a version's work keeps the records of its message batches."""


@dataclass(frozen=True)
class JudgeOptions:
    """What the operator says of judging through an API; `price` is None for the table's."""

    how: Literal["messages", "batches"] = "messages"
    url: str | None = None
    max_usd: float = MAX_USD
    price: Price | None = None


def open_model(spec: JudgeSpec, options: JudgeOptions, folder: Path) -> JudgeClient:
    """Return the model, to be closed as a context; `folder` is the version's work.

    Nothing is sent yet. An InputError for a judge that answers by file, for a missing or bad key or address, for a key
    that would go unencrypted to a public one, and for an unknown price; a BudgetError for a ledger
    that cannot be read.
    """
    url = options.url
    if spec.by_file:
        raise InputError(f"{spec.model} answers by file (api: files in the plan); there is no service to ask.")
    if options.how == "batches" and spec.api != "anthropic":
        raise InputError(f"--judge batches: {spec.api} has no message batches. Give --judge messages.")
    if spec.api == "openai" and not url:
        raise InputError(f"{spec.model} is asked through an OpenAI-compatible server; give its base as --judge-url.")
    if spec.api == "openai" and url and options.price is None and is_own(judge_address(url).host):
        _say_uncounted(judge_address(url).url)
    price = model_price(spec, options)
    budget, way = Budget(folder / SPEND, options.max_usd), Way(url=url or "")
    if spec.api == "openai":
        return OpenAIChat(spec.model, budget, price, way)
    if spec.api != "anthropic":
        raise InputError(f"{spec.model}: no client speaks api: {spec.api}; nothing else is asked in its place.")
    if options.how == "batches":
        return ClaudeBatches(spec.model, budget, price, replace(way, timeout=BATCH_TIMEOUT), folder / RECORDS)
    return ClaudeMessages(spec.model, budget, price, way)


def model_price(spec: JudgeSpec, options: JudgeOptions) -> Price:
    """Return what a judge's service charges: the operator's price, or the table's for an Anthropic model.

    BY_FILE for one that answers by file, FREE for an OpenAI-compatible server at a private address, or none yet. An
    InputError for any other service, which may charge, and for a model that the table does not have.
    """
    if spec.by_file:
        return BY_FILE
    if options.price is None and spec.api == "openai" and (not options.url or is_own(judge_address(options.url).host)):
        return FREE
    if options.price is None and spec.api != "anthropic":
        where = f" at {judge_address(options.url).url}" if options.url else ""
        raise InputError(
            f"What {spec.model} costs{where} is not known, and --max-usd could not hold it. Give {PRICE_FLAG} IN,OUT, "
            f"in dollars a million tokens read and written, or {PRICE_FLAG} 0,0 for a server that charges nothing."
        )
    price = price_of(spec.model) if options.price is None else options.price
    return price.in_batches() if options.how == "batches" else price


@cache
def _say_uncounted(url: str) -> None:
    """Say so once for each address, however often it is opened."""
    say(f"{url} is taken for a server of one's own: nothing is counted against --max-usd without {PRICE_FLAG}.")
