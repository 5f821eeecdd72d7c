"""A Claude model asked through Anthropic's Messages API, as each model takes it, and the reply in what it answers."""

from dataclasses import replace
from typing import Literal
from urllib.parse import quote

from runner.base.canonical import JSON
from runner.base.errors import InputError
from runner.base.http_client import Service
from runner.embed.cost.ledger import Budget
from runner.embed.cost.prices import Price, Usage
from runner.eval_set.shapes.labels import is_same_model, undated
from runner.judge.models.client import ANTHROPIC_KEY, URL_FLAG, Ask, JudgeClient, Reply, Way, as_object, token_count

Thinking = Literal["off", "disabled", "between_tools", "always", "unknown"]

THINKING: dict[str, Thinking] = {
    "claude-haiku-4-5": "off",
    "claude-sonnet-4-5": "off",
    "claude-opus-4-5": "off",
    "claude-sonnet-4-6": "off",
    "claude-opus-4-6": "off",
    "claude-opus-4-7": "off",
    "claude-opus-4-8": "off",
    "claude-sonnet-5": "disabled",
    "claude-opus-5": "disabled",
    "claude-haiku-5-5": "disabled",
    "claude-sonnet-5-5": "between_tools",
    "claude-opus-5-5": "always",
    "claude-fable-5": "always",
    "claude-fable-5-1": "always",
    "claude-mythos-5": "always",
    "claude-mythos-5-1": "always",
}
"""How a model is kept from thinking before it answers, by Anthropic's migration guides of 2026: it does not by itself,
a field turns it off, or it cannot be kept from it."""

COLD = frozenset(("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5", "claude-sonnet-4-6", "claude-opus-4-6"))
"""Models that take a temperature; all that came after refuse any."""

COLD_VERSION = "2023-06-01"
"""The last version of the API that takes a temperature at all."""

VERSION = "2026-10-21"
"""Of the API, for every other model."""

THINKING_ROOM = 2048
"""Tokens that a model which cannot be kept from thinking gets beside those of its answer."""


class ClaudeMessages(JudgeClient):
    """The model, one request at a time or a few; closing it lets go of the connections.

    An InputError for a missing key.
    """

    service = Service(URL_FLAG, ANTHROPIC_KEY, "Check the judge's model id in plan.yaml, and --judge-url.")
    home = "https://api.anthropic.com"

    def __init__(self, model: str, budget: Budget, price: Price, way: Way) -> None:
        super().__init__(model, budget, price, way)
        if not self.http.secret.value:
            raise InputError(
                f"The environment has no {ANTHROPIC_KEY}. Put the service's key there; it is written nowhere."
            )

    def endpoint(self, url: str) -> str:
        """Return where messages are asked for."""
        return f"{url}/v1/messages"

    def headers(self) -> dict[str, str]:
        """Return the version of the API that takes what the model is sent."""
        return {"anthropic-version": COLD_VERSION if undated(self.model) in COLD else VERSION}

    def check(self) -> str:
        """Look the model up, which costs nothing; see JudgeClient."""
        return self.http.check_key(f"{self.url.removesuffix('/messages')}/models/{quote(self.model, safe='')}")

    def sent(self, ask: Ask) -> Ask:
        """Return the ask with room to think, if the model cannot be kept from it."""
        if THINKING.get(undated(self.model), "unknown") in ("always", "unknown"):
            return replace(ask, max_tokens=ask.max_tokens + THINKING_ROOM)
        return ask

    def request(self, ask: Ask) -> dict[str, JSON]:
        """Return the fields of a request, the same within a batch and outside."""
        thinking = THINKING.get(undated(self.model), "unknown")
        output: dict[str, JSON] = {"format": {"type": "json_schema", "schema": dict(ask.schema)}}
        fields: dict[str, JSON] = {
            "model": self.model,
            "max_tokens": ask.max_tokens,
            "system": [{"type": "text", "text": ask.system, "cache_control": {"type": "ephemeral"}}],
            "messages": [{"role": "user", "content": ask.user}],
            "output_config": output,
        }
        # As little thinking as the model allows: it is paid for, and a grade needs none.
        if thinking == "always":
            output["effort"] = "low"
        elif thinking in ("disabled", "between_tools"):
            fields["thinking"] = {"type": thinking}
        if undated(self.model) in COLD:
            fields["temperature"] = 0.0
        return fields

    def read(self, ask: Ask, answer: JSON) -> Reply:
        """Return the reply in a message."""
        return reply_of(ask.key, self.model, answer)


_STOPS = {
    "max_tokens": "the answer was cut off at the limit of tokens",
    "tool_use": "the model called a tool, and there is none",
    "pause_turn": "the model paused",
    "model_context_window_exceeded": "the request is longer than the model reads",
}


def reply_of(key: str, asked: str, message: JSON) -> Reply:
    """Return the reply in a message as it was received; its problem if it is not what was asked for."""
    if not isinstance(message, dict):
        return Reply(key=key, problem="the answer is no JSON object")
    model = message["model"] if isinstance(message.get("model"), str) else ""
    content = message.get("content")
    # The text stands in blocks; those of thinking are left out.
    blocks = [as_object(block) for block in content] if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    text = "".join(text for text in texts if isinstance(text, str))
    problem = _problem(asked, model, message) or ("" if text.strip() else "the answer has no text")
    return Reply(
        key=key,
        text="" if problem else text,
        model=model,
        usage=usage_of(message),
        raw=message,
        problem=problem,
        final=message.get("stop_reason") == "model_context_window_exceeded",
        astray=bool(model) and not is_same_model(asked, model),
    )


def usage_of(message: JSON) -> Usage | None:
    """Return the tokens that a message says it cost, None if it does not say."""
    usage = as_object(message).get("usage")
    if not isinstance(usage, dict):
        return None
    # Four counts with four prices; a missing one of the cache is none.
    read, written = token_count(usage.get("input_tokens")), token_count(usage.get("output_tokens"))
    to_cache = token_count(usage.get("cache_creation_input_tokens") or 0)
    from_cache = token_count(usage.get("cache_read_input_tokens") or 0)
    if read is None or written is None or to_cache is None or from_cache is None:
        return None
    return Usage(read=read, cache_written=to_cache, cache_read=from_cache, written=written)


def _problem(asked: str, model: str, message: dict[str, JSON]) -> str:
    if message.get("type") != "message" or message.get("role") != "assistant":
        return "the answer is no message of the assistant's"
    if not is_same_model(asked, model):
        return f"{model or 'a model without a name'} answered, {asked} was asked"
    stop = message.get("stop_reason")
    if stop == "refusal":
        category = as_object(message.get("stop_details")).get("category")
        return f"the model refused ({category})" if isinstance(category, str) else "the model refused"
    if stop in ("end_turn", "stop_sequence"):
        return ""
    return _STOPS.get(str(stop), "the answer ends for no known reason")
