"""What Anthropic's API is sent for an ask, as each Claude model takes it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from runner.base.canonical import digest
from runner.judge.models.prices import undated
from runner.judge.models.requests import Ask

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
    """Whether the model is asked at temperature 0."""
    return undated(model) in COLD


def headers(model: str) -> dict[str, str]:
    """What its requests are sent with beside the SDK's own headers."""
    return {"anthropic-version": COLD_VERSION} if is_cold(model) else {}


def with_room(model: str, ask: Ask) -> Ask:
    """The ask as it is sent and paid: with room to think where the model may."""
    if THINKING.get(undated(model), "unknown") in ("always", "unknown"):
        return replace(ask, max_tokens=ask.max_tokens + THINKING_ROOM)
    return ask


def params(model: str, ask: Ask) -> "MessageCreateParamsNonStreaming":
    """The fields of a request, without the temperature, which the SDK no longer knows."""
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
    """Fields of a request that the SDK does not know."""
    return {"temperature": 0.0} if is_cold(model) else {}


def custom_id(ask: Ask, fields: Mapping[str, Any]) -> str:
    """What names a request within a message batch: 64 characters, the most that the API takes."""
    return digest({"key": ask.key, "params": fields})
