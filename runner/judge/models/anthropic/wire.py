"""What Anthropic's API is sent for an ask, as each Claude model takes it, and the reply in what it answers."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from runner.base.canonical import JSON, digest
from runner.eval_set.plan import is_same_model, undated
from runner.judge.models.requests import Ask, Reply, Usage

if TYPE_CHECKING:
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
    from anthropic.types.output_config_param import OutputConfigParam

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
"""The last version of the API that takes a temperature at all; the SDK speaks 2026-10-21 by itself."""

THINKING_ROOM = 2048
"""Tokens that a model which cannot be kept from thinking gets beside those of its answer."""


def is_cold(model: str) -> bool:
    """Return whether the model is asked at temperature 0."""
    return undated(model) in COLD


def headers(model: str) -> dict[str, str]:
    """Return what its requests are sent with beside the SDK's own headers."""
    return {"anthropic-version": COLD_VERSION} if is_cold(model) else {}


def with_room(model: str, ask: Ask) -> Ask:
    """Return the ask as it is sent and paid: with room to think where the model may."""
    if THINKING.get(undated(model), "unknown") in ("always", "unknown"):
        return replace(ask, max_tokens=ask.max_tokens + THINKING_ROOM)
    return ask


def params(model: str, ask: Ask) -> "MessageCreateParamsNonStreaming":
    """Return the fields of a request, without the temperature, which the SDK no longer knows."""
    from anthropic import transform_schema

    thinking = THINKING.get(undated(model), "unknown")
    output: OutputConfigParam = {"format": {"type": "json_schema", "schema": transform_schema(dict(ask.schema))}}
    if thinking == "always":
        output["effort"] = "low"
    fields: MessageCreateParamsNonStreaming = {
        "model": model,
        "max_tokens": ask.max_tokens,
        "system": [{"type": "text", "text": ask.system, "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": ask.user}],
        "output_config": output,
    }
    if thinking == "disabled":
        fields["thinking"] = {"type": "disabled"}
    elif thinking == "between_tools":
        fields["thinking"] = {"type": "between_tools"}
    return fields


def beyond_sdk(model: str) -> dict[str, float]:
    """Return the fields of a request that the SDK does not know."""
    return {"temperature": 0.0} if is_cold(model) else {}


def custom_id(ask: Ask, fields: Mapping[str, Any]) -> str:
    """Return what names a request within a message batch: 64 characters, the most that the API takes."""
    return digest({"key": ask.key, "params": fields})


MOST_TOKENS = 10**9
"""A count beyond it is none."""

_STOPS = {
    "max_tokens": "the answer was cut off at the limit of tokens",
    "tool_use": "the model called a tool, and there is none",
    "pause_turn": "the model paused",
    "model_context_window_exceeded": "the request is longer than the model reads",
}

_FINAL = frozenset(("model_context_window_exceeded",))

_WHOLE = frozenset(("end_turn", "stop_sequence"))


def reply_of(key: str, asked: str, message: JSON) -> Reply:
    """Return the reply in a message as it was received; its problem if it is not what was asked for."""
    if not isinstance(message, dict):
        return Reply(key=key, problem="the answer is no JSON object")
    named = message.get("model")
    model = named if isinstance(named, str) else ""
    text = _text(message)
    problem = _problem(asked, model, message) or ("" if text.strip() else "the answer has no text")
    return Reply(
        key=key,
        text="" if problem else text,
        model=model,
        usage=usage_of(message),
        raw=message,
        problem=problem,
        final=str(message.get("stop_reason")) in _FINAL,
    )


def usage_of(message: JSON) -> Usage | None:
    """Return the tokens that a message says it cost, None if it does not say."""
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(usage, dict):
        return None
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
        details = message.get("stop_details")
        category = details.get("category") if isinstance(details, dict) else None
        return f"the model refused ({category})" if isinstance(category, str) else "the model refused"
    if str(stop) in _WHOLE:
        return ""
    return _STOPS.get(str(stop), "the answer ends for no known reason")


def _text(message: dict[str, JSON]) -> str:
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


def token_count(value: JSON) -> int | None:
    """Return a number of tokens, None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None
