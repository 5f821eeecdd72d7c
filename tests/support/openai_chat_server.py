"""A loopback server of /v1/chat/completions, as vLLM answers, scripted like the stand-in of Anthropic's API."""

import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.anthropic_server import Scripted, changed, no_usage
from tests.support.loopback import NOTHING_HERE, Request, Wire, as_json

__all__ = ["no_usage"]

Answer = dict[str, object]


def _with(**changes: object) -> Callable[[Answer], Answer]:
    """The answer whose message has these fields; a function makes one of what was said."""

    def tamper(answer: Answer) -> Answer:
        choice = answer["choices"][0]
        made = {name: new(choice["message"]["content"]) if callable(new) else new for name, new in changes.items()}
        return {**answer, "choices": [{**choice, "message": {**choice["message"], **made}}]}

    return tamper


prose = _with(content=lambda said: f"Sure! {said}")
thought = _with(content=lambda said: f"<think>The clause is on harbors.</think>\n{said}")
fenced = _with(content=lambda said: f"```json\n{said}\n```")
reasoned = _with(reasoning_content="The clause is on harbors.")
off_schema = _with(content=lambda _: '{"score": "high"}')
refusal = _with(content=None, refusal="I cannot help with that.")
wrong_role = _with(role="user")


def cut_off(answer: Answer) -> Answer:
    cut = _with(content=lambda said: said[:5])(answer)
    return {**cut, "choices": [{**cut["choices"][0], "finish_reason": "length"}]}


other_model = changed(model="another-model")
empty = changed(choices=[])


def error(status: int, message: str, **more: object) -> Wire:
    """An error in OpenAI's form."""
    return as_json({"error": {"message": message, "type": "error", "param": None, "code": None}}, status, **more)


@dataclass
class ChatServer(Scripted):
    """POST /v1/chat/completions; faults as of the other stand-in, those of an answer from this module."""

    models: int = 404
    """The status in answer to a look at the list of models."""
    thinks: bool = False
    """Whether it takes max_completion_tokens in place of max_tokens, and no temperature, and names one at a time."""

    def right(self, request: Request) -> Wire:
        if request.path == "/v1/models":
            return error(self.models, "no")
        if (request.method, request.path) != ("POST", "/v1/chat/completions"):
            return NOTHING_HERE
        body = request.body
        if self.thinks and "max_tokens" in body:
            return error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
        if self.thinks and "temperature" in body:
            return error(400, "Unsupported value: 'temperature' does not support 0 with this model.")
        user = next(turn["content"] for turn in body["messages"] if turn["role"] == "user")
        fault = self.fault(user, in_order=True)
        if isinstance(fault, Wire):
            return fault
        right = self._whole(body["model"], user)
        return as_json(fault(right) if callable(fault) else right)

    def _whole(self, model: str, user: str) -> Answer:
        message = {"role": "assistant", "content": json.dumps(self.grade(user)), "refusal": None}
        return {
            "id": "chatcmpl-1",
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": len(user) // 4 + 10,
                "completion_tokens": 40,
                "total_tokens": len(user) // 4 + 50,
                "prompt_tokens_details": {"cached_tokens": 4},
            },
        }
