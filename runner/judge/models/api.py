"""The language model that a plan names, opened."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from runner.base.errors import InputError
from runner.base.http_client import is_own
from runner.base.progress import say
from runner.embed.cost.ledger import SPEND
from runner.eval_set.shapes.labels import JudgeSpec
from runner.judge.models.anthropic.batches import AnthropicBatches
from runner.judge.models.anthropic.client import AnthropicMessages
from runner.judge.models.client import JudgeClient, JudgeMeter, Way, judge_address
from runner.judge.models.openai_chat import OpenAIChat
from runner.judge.models.prices import BY_FILE, FREE, PRICE_FLAG, Price, price_of

How = Literal["messages", "batches"]
BATCH_TIMEOUT = 300.0
"""Seconds that handing in a message batch, or fetching its results, may take."""

RECORDS = Path("judging", "message-batches")
"""Where a version's work keeps the records of its message batches."""


def open_model(
    spec: JudgeSpec,
    how: How,
    url: str | None,
    folder: Path,
    max_usd: float,
    price: Price | None = None,
) -> JudgeClient:
    """Return the model, to be closed as a context; `folder` is the version's work, `price` one that the operator gave.

    Nothing is sent yet. An InputError for a judge that answers by file, for a missing or bad key or address, for a key
    that would go unencrypted to a public one, and for an unknown price; a BudgetError for a ledger
    that cannot be read.
    """
    if spec.by_file:
        raise InputError(f"{spec.model} answers by file (api: files in the plan); there is no service to ask.")
    is_chat = spec.api == "openai"
    if how == "batches" and spec.api != "anthropic":
        raise InputError(f"--judge batches: {spec.api} has no message batches. Give --judge messages.")
    if is_chat and not url:
        raise InputError(f"{spec.model} is asked through an OpenAI-compatible server; give its base as --judge-url.")
    charged = model_price(spec, url) if price is None else price
    if is_chat and url and price is None:
        _say_uncounted(judge_address(url).url)
    meter = JudgeMeter(folder / SPEND, max_usd, spec.model, charged.in_batches() if how == "batches" else charged)
    way = Way(url=url or "")
    if is_chat:
        return OpenAIChat(spec.model, meter, way)
    if spec.api != "anthropic":
        raise InputError(f"{spec.model}: no client speaks api: {spec.api}; nothing else is asked in its place.")
    if how == "batches":
        return AnthropicBatches(spec.model, meter, replace(way, timeout=BATCH_TIMEOUT), folder / RECORDS)
    return AnthropicMessages(spec.model, meter, way)


def model_price(spec: JudgeSpec, url: str | None = None) -> Price:
    """Return what a judge's service charges.

    The table's price for an Anthropic model, BY_FILE for one that answers by file, FREE for an OpenAI-compatible
    server at a private address, or none yet. An InputError for any other service, which may charge, and for a model
    that the table does not have.
    """
    if spec.by_file:
        return BY_FILE
    if spec.api == "anthropic":
        return price_of(spec.model)
    if spec.api == "openai" and (not url or is_own(judge_address(url).host)):
        return FREE
    where = f" at {judge_address(url).url}" if url else ""
    raise InputError(
        f"What {spec.model} costs{where} is not known, and --max-usd could not hold it. Give {PRICE_FLAG} IN,OUT, in "
        f"dollars a million tokens read and written, or {PRICE_FLAG} 0,0 for a server that charges nothing."
    )


@cache
def _say_uncounted(url: str) -> None:
    """Say so once for each address, however often it is opened."""
    say(f"{url} is taken for a server of one's own: nothing is counted against --max-usd without {PRICE_FLAG}.")
