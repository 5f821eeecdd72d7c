"""A loopback Anthropic API, Messages and Message Batches, that can be told to fail and to lie in every way they do."""

import itertools
import json
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from runner.embed.cost.prices import Usage
from runner.judge.models.client import Ask
from tests.support.loopback import Loopback, Request, Wire, as_json, served

__all__ = ["Wire", "as_json", "served"]

KEY = "sk-ant-planted-KEY_0123456789"
MODEL = "claude-sonnet-4-6"
RIGHT = {"grade": 2, "reason": "it rules on the matter", "passages": [1]}
SCHEMA = {
    "type": "object",
    "properties": {
        "grade": {"enum": [0, 1, 2, 3]},
        "reason": {"type": "string"},
        "passages": {"type": "array", "items": {"type": "integer"}},
    },
    "required": ["grade", "reason", "passages"],
    "additionalProperties": False,
}


def ask(number=0, text="harbor dues", max_tokens=300):
    return Ask(f"key {number}", "Grade the document.", f"{text} {number}", SCHEMA, max_tokens)


def worst_usd(asked, price):
    """What a client holds for one request of these texts."""
    n_bytes = len(asked.system.encode()) + len(asked.user.encode()) + len(json.dumps(dict(asked.schema)))
    return price.usd(Usage(cache_written=n_bytes + 600, written=asked.max_tokens))


def asks(count, text="harbor dues"):
    return [ask(number, text) for number in range(count)]


def answered(model, given):
    return {reply.key: reply for reply in model.replies(given)}


def only(model):
    (reply,) = model.replies([ask()])
    return reply


COLD = ("claude-haiku-4-5", "claude-sonnet-4-5", "claude-opus-4-5", "claude-sonnet-4-6", "claude-opus-4-6")
KNOWN_FIELDS = {"model", "max_tokens", "system", "messages", "output_config", "thinking", "temperature"}
UNSUPPORTED = {"minimum", "maximum", "minLength", "maxLength", "maxItems", "multipleOf", "pattern"}


def api_error(status: int, kind: str, message: str, **more: object) -> Wire:
    """An error in the API's form."""
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_loopback"}
    return as_json(body, status, **more)


def rate_limited(seconds: float | str = 0) -> Wire:
    return api_error(429, "rate_limit_error", "slow down", headers=(("retry-after", str(seconds)),))


def overloaded() -> Wire:
    return api_error(529, "overloaded_error", "Overloaded")


def broken() -> Wire:
    return api_error(500, "api_error", "Internal server error")


def credit_exhausted() -> Wire:
    return api_error(400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.")


def too_long() -> Wire:
    return api_error(400, "invalid_request_error", "prompt is too long: 1000001 tokens > 1000000 maximum")


def status(code: int, message: str = "no", kind: str = "invalid_request_error") -> Wire:
    return api_error(code, kind, message)


def hang(until: threading.Event) -> Wire:
    """Nothing is sent before the event is set."""
    return Wire(b"{}", hold=until)


def reset(after: int = 0) -> Wire:
    """The connection breaks off after so many bytes of the body."""
    return Wire(b'{"id": "msg_', cut=after)


def not_there() -> Wire:
    return api_error(404, "not_found_error", "no such batch")


def not_json() -> Wire:
    return Wire(b'{"id": "msg_1", "type": "mess')


def huge(n_bytes: int) -> Wire:
    return Wire(b" " * n_bytes)


Message = dict[str, object]
Tamper = Callable[[Message], Message]


def _said(message: Message) -> str:
    return message["content"][-1]["text"]


def saying(change: Callable[[str], str]) -> Tamper:
    """The answer with its text changed."""
    return lambda message: {**message, "content": [{"type": "text", "text": change(_said(message))}]}


def changed(**fields: object) -> Tamper:
    """The answer with other fields."""
    return lambda message: {**message, **fields}


prose = saying(lambda text: f"Here is my judgment:\n```json\n{text}\n```")
thought = saying(lambda text: f"<think>The clause is on harbors.</think>\n{text}")
two_objects = saying(lambda text: text * 2)
off_schema = saying(lambda text: json.dumps({"score": "high"}))
not_an_object = saying(lambda text: "3")
other_model = changed(model="claude-instant-1.2")
wrong_role = changed(role="user")
empty = changed(content=[])
refusal = changed(
    content=[], stop_reason="refusal", stop_details={"type": "refusal", "category": "bio", "explanation": None}
)


def cut_off(message: Message) -> Message:
    return {**saying(lambda text: text[:5])(message), "stop_reason": "max_tokens"}


def no_usage(message: Message) -> Message:
    return {name: value for name, value in message.items() if name != "usage"}


Fault = Wire | Tamper | str | None
"""What to do instead of the right answer; a string is how a request in a batch ends: errored, expired, canceled."""


@dataclass
class Scripted(Loopback):
    """Faults, taken one a request: by the order of arrival, by a word of the user's text, or for ever by a word."""

    grade: Callable[[str], dict[str, object]]
    faults: list[Fault] = field(default_factory=list)
    by_text: dict[str, list[Fault]] = field(default_factory=dict)
    always: dict[str, Fault] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    answering: Callable[[Request], None] = lambda request: None
    """Called when an answer is about to be sent."""
    asked: list[str] = field(default_factory=list)
    """The user's text of every request for an answer, batched ones included."""

    def sent(self, word: str) -> int:
        """How many asks with the word arrived."""
        return sum(word in text for text in self.asked)

    def fault(self, user: str, *, in_order: bool) -> Fault:
        with self.lock:
            self.asked.append(user)
            if in_order and self.faults:
                return self.faults.pop(0)
            for word, faults in self.by_text.items():
                if word in user and faults:
                    return faults.pop(0)
        return next((fault for word, fault in self.always.items() if word in user), None)

    def answer(self, request: Request) -> Wire:
        wire = self.right(request)
        self.answering(request)
        return wire

    def right(self, request: Request) -> Wire:
        """The answer of a server that keeps to its script."""
        raise NotImplementedError


@dataclass
class AnthropicServer(Scripted):
    """POST /v1/messages and /v1/messages/batches. `polls` is how often a batch says that it is at work."""

    key: str = ""
    """The one key that is known, "" for any."""
    polls: int = 1
    models: int = 404
    """The status in answer to a look at a model."""
    mangle: Callable[[list[dict]], list[dict]] = list
    created: list[Wire | None] = field(default_factory=list)
    """Answers to the creation of batches, one a POST, None for the right one; the batch is made in any case."""
    turned_away: list[Wire] = field(default_factory=list)
    """Answers to the creation of batches that are not made."""
    retrieved: list[Wire | None] = field(default_factory=list)
    fetched: list[Wire] = field(default_factory=list)
    """Answers to a look at one batch, None for the right one, and at its results."""
    batches: dict[str, dict] = field(default_factory=dict)
    results: dict[str, list[dict]] = field(default_factory=dict)
    seen_systems: set[str] = field(default_factory=set)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def right(self, request: Request) -> Wire:
        if not re.fullmatch(r"Bearer \S+", request.headers.get("authorization", "")):
            return api_error(401, "authentication_error", "x-api-key header is required")
        if self.key not in ("", request.headers["authorization"].removeprefix("Bearer ")):
            return api_error(401, "authentication_error", "invalid x-api-key")
        path, version = urlsplit(request.path).path, request.headers.get("anthropic-version")
        if version not in ("2023-06-01", "2026-10-21"):
            return api_error(400, "invalid_request_error", "anthropic-version: header is required")
        if request.method == "POST" and path == "/v1/messages":
            return self._message(request.body, version)
        if request.method == "POST" and path == "/v1/messages/batches":
            return self._create(request.body, version)
        found = re.fullmatch(r"/v1/messages/batches/(\w+)(/results)?", path)
        if request.method == "GET" and found and found[1] in self.batches:
            return self._results(found[1]) if found[2] else self._retrieve(found[1])
        return api_error(self.models, "not_found_error", f"not found: {path}")

    def _message(self, body: dict, version: str) -> Wire:
        if wrong := objection(body, version):
            return api_error(400, "invalid_request_error", wrong)
        fault = self.fault(_user(body), in_order=True)
        if isinstance(fault, Wire):
            return fault
        message = self._right(body)
        return as_json(fault(message) if callable(fault) else message)

    def _right(self, body: dict) -> Message:
        user, system = _user(body), body["system"][0]["text"]
        with self.lock:
            is_known = system in self.seen_systems
            self.seen_systems.add(system)
            number = next(self._numbers)
        cached = max(len(system) // 4, 1)
        usage = {
            "input_tokens": max(len(user) // 4, 1),
            "cache_creation_input_tokens": 0 if is_known else cached,
            "cache_read_input_tokens": cached if is_known else 0,
            "output_tokens": 40,
        }
        text = json.dumps(self.grade(user))
        return {
            "id": f"msg_{number:024d}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "thinking", "thinking": "", "signature": "c2ln"}, {"type": "text", "text": text}],
            "stop_reason": "end_turn",
            "usage": usage,
        }

    def _create(self, body: dict, version: str) -> Wire:
        with self.lock:
            if self.turned_away:
                return self.turned_away.pop(0)
        rows = body["requests"]
        names = [row["custom_id"] for row in rows]
        if len(set(names)) < len(names) or not all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names):
            return api_error(400, "invalid_request_error", "requests: custom_id is wrong or occurs twice")
        for row in rows:
            if wrong := objection(row["params"], version):
                return api_error(400, "invalid_request_error", f"requests: {wrong}")
        with self.lock:
            batch_id = f"msgbatch_{next(self._numbers):024d}"
        self.results[batch_id] = [
            {"custom_id": row["custom_id"], "result": self._result(row["params"])} for row in rows
        ]
        self.batches[batch_id] = {
            "id": batch_id,
            "processing_status": "in_progress",
            "polls": 0,
        }
        with self.lock:
            said = self.created.pop(0) if self.created else None
        return said or self._shown(batch_id)

    def _result(self, params: dict) -> dict:
        fault = self.fault(_user(params), in_order=False)
        if isinstance(fault, Wire):
            return {"type": "errored", "error": json.loads(broken().body)}
        if fault == "errored":
            return {"type": "errored", "error": json.loads(overloaded().body)}
        if isinstance(fault, str):
            return {"type": fault}
        message = self._right(params)
        return {"type": "succeeded", "message": fault(message) if callable(fault) else message}

    def _shown(self, batch_id: str) -> Wire:
        return as_json({name: value for name, value in self.batches[batch_id].items() if name != "polls"})

    def _retrieve(self, batch_id: str) -> Wire:
        with self.lock:
            if self.retrieved and (said := self.retrieved.pop(0)):
                return said
            batch = self.batches[batch_id]
            batch["polls"] += 1
            if batch["polls"] > self.polls:
                batch["processing_status"] = "ended"
                # An address of another host, as the API names its own behind a proxy.
                batch["results_url"] = f"https://api.anthropic.com/v1/messages/batches/{batch_id}/results"
        return self._shown(batch_id)

    def _results(self, batch_id: str) -> Wire:
        if self.fetched:
            return self.fetched.pop(0)
        lines = "".join(json.dumps(row) + "\n" for row in self.mangle(list(self.results[batch_id])))
        return Wire(lines.encode(), type="application/x-jsonl")


def objection(body: dict, version: str) -> str:
    """What the API would have against a request, "" for nothing."""
    if unknown := set(body) - KNOWN_FIELDS:
        return f"{min(unknown)}: Extra inputs are not permitted"
    if "temperature" in body and version != "2023-06-01":
        return "temperature: Extra inputs are not permitted"
    if "temperature" in body and not body["model"].startswith(COLD):
        return "`temperature` is deprecated for this model."
    if not isinstance(body.get("max_tokens"), int) or body["max_tokens"] < 1:
        return "max_tokens: Field required"
    schema = body["output_config"]["format"]["schema"]
    if found := UNSUPPORTED & set(re.findall(r'"(\w+)":', json.dumps(schema))):
        return f"output_config.format.schema: {min(found)} is not supported"
    if schema.get("additionalProperties") is not False:
        return "output_config.format.schema: additionalProperties must be false"
    return ""


def _user(body: dict) -> str:
    content = body["messages"][0]["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def echoing(wire: Wire, word: str) -> Wire:
    """The same answer with a word in its text, as a service that repeats what it was sent."""
    return replace(wire, body=json.dumps({"error": {"type": "api_error", "message": f"you sent {word}"}}).encode())
