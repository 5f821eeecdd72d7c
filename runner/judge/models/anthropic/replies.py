"""What Anthropic's API answers, held against what was asked."""

from runner.base.canonical import JSON
from runner.judge.models.prices import undated
from runner.judge.models.requests import Reply, Usage

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
    """The reply in a message; its problem where it is not what was asked for. `message` is JSON as it was received."""
    if not isinstance(message, dict):
        return Reply(key, "", "", problem="the answer is no JSON object")
    named = message.get("model")
    model = named if isinstance(named, str) else ""
    text = _text(message)
    problem = _problem(asked, model, message) or ("" if text.strip() else "the answer has no text")
    return Reply(
        key,
        "" if problem else text,
        model,
        usage_of(message) or Usage(),
        message,
        problem,
        final=str(message.get("stop_reason")) in _FINAL,
    )


def usage_of(message: JSON) -> Usage | None:
    """The tokens that a message says it cost, None where it does not say."""
    usage = message.get("usage") if isinstance(message, dict) else None
    if not isinstance(usage, dict):
        return None
    read, written = token_count(usage.get("input_tokens")), token_count(usage.get("output_tokens"))
    to_cache = token_count(usage.get("cache_creation_input_tokens") or 0)
    from_cache = token_count(usage.get("cache_read_input_tokens") or 0)
    if read is None or written is None or to_cache is None or from_cache is None:
        return None
    return Usage(read=read, cache_written=to_cache, cache_read=from_cache, written=written)


def is_same_model(asked: str, answered: str) -> bool:
    """Whether one id stands for the other: they differ by a date at most."""
    return asked == answered or (undated(asked) == undated(answered) and asked in (undated(asked), undated(answered)))


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
    """A number of tokens, None for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS else None
