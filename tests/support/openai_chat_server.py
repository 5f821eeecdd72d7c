"""A loopback server of /v1/chat/completions, as vLLM answers, scripted like the stand-in of Anthropic's API."""

import json
from dataclasses import dataclass

from tests.support.anthropic_server import Scripted, changed, no_usage
from tests.support.loopback import NOTHING_HERE, Request, Wire, as_json

__all__ = ["no_usage"]

Answer = dict[str, object]


def _choice(answer: Answer, **changes: object) -> Answer:
    return {**answer, "choices": [{**answer["choices"][0], **changes}]}


def _message(answer: Answer, **changes: object) -> Answer:
    return _choice(answer, message={**answer["choices"][0]["message"], **changes})


def _said(answer: Answer) -> str:
    return answer["choices"][0]["message"]["content"]


def prose(answer: Answer) -> Answer:
    return _message(answer, content=f"Sure! {_said(answer)}")


def off_schema(answer: Answer) -> Answer:
    return _message(answer, content='{"score": "high"}')


def refusal(answer: Answer) -> Answer:
    return _message(answer, content=None, refusal="I cannot help with that.")


def cut_off(answer: Answer) -> Answer:
    return _choice(_message(answer, content=_said(answer)[:5]), finish_reason="length")


def wrong_role(answer: Answer) -> Answer:
    return _message(answer, role="user")


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

    def right(self, request: Request) -> Wire:
        if request.path == "/v1/models":
            return error(self.models, "no")
        if (request.method, request.path) != ("POST", "/v1/chat/completions"):
            return NOTHING_HERE
        body = request.body
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
