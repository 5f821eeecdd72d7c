"""A language model asked through an OpenAI-compatible server: POST /chat/completions."""

import json

from runner.base.canonical import JSON
from runner.base.http_client import Client, Service
from runner.judge.models.anthropic.wire import token_count
from runner.judge.models.client import JUDGE_KEY, URL_FLAG, JudgeClient, judge_address, received
from runner.judge.models.requests import Ask, Reply, Usage

MAX_BYTES = 4_000_000

JUDGE = Service(
    URL_FLAG,
    JUDGE_KEY,
    "Either the model is not served under this name, or the path is wrong: POST /v1/chat/completions is asked (vLLM, "
    "llama.cpp, Ollama, OpenRouter). Check --judge-url and the judge's model id in plan.yaml.",
)

_STOPS = {
    "length": "the answer was cut off at the limit of tokens",
    "content_filter": "the server's filter withheld the answer",
    "tool_calls": "the model called a tool, and there is none",
}


class OpenAIChat(JudgeClient):
    """The model of a server, whose address may end in /v1 or in /chat/completions. Raises as LanguageModel says.

    The first answer's model is the session's: a reply of another one has a problem.
    """

    http: Client

    def connected(self) -> tuple[Client, str]:
        """Return the server at its address; its key is sent if there is one."""
        self._answering = ""
        way = self.way
        http = Client(way.timeout, way.patience, JUDGE, judge_address(way.url))
        return http, endpoint(way.url)

    def check(self) -> None:
        """Ask for the list of models, or without a key for a word, which nobody can be charged for.

        Some services show their models to anybody.
        """
        if self.http.secret.value:
            self.http.check_key(self.url.removesuffix("/chat/completions") + "/models")
        else:
            self.http.check_key(self.url, request_body(self.model, Ask("", "", "word", {"type": "object"}, 1)))

    def send(self, ask: Ask) -> JSON:
        """Return one completion, as received."""
        got = self.http.once("POST", self.url, request_body(self.model, ask), MAX_BYTES)
        return received(self.http.secret.without(got.body.decode("utf-8", "replace")))

    def read(self, ask: Ask, answer: JSON) -> Reply:
        """Return the reply in a completion."""
        return reply_of(ask.key, answer)

    def accepted(self, reply: Reply) -> Reply:
        """Return the reply, with a problem if another model answered before."""
        with self.lock:
            self._answering = self._answering or reply.model
        if reply.model == self._answering:
            return reply
        other = f"{reply.model or 'a model without a name'} answered, another one did before"
        return reply.model_copy(update={"text": "", "problem": reply.problem or other})


def endpoint(url: str) -> str:
    """Return where the chat is asked; an InputError for a bad address."""
    base = judge_address(url).url
    if base.endswith("/chat/completions"):
        return base
    return f"{base if base.endswith('/v1') else base + '/v1'}/chat/completions"


def request_body(model: str, ask: Ask) -> bytes:
    """Return the JSON that asks for one answer in the schema's form."""
    form = {"name": "answer", "strict": True, "schema": dict(ask.schema)}
    body = {
        "model": model,
        "messages": [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.user}],
        "response_format": {"type": "json_schema", "json_schema": form},
        "max_tokens": ask.max_tokens,
        "temperature": 0,
    }
    return json.dumps(body).encode()


def reply_of(key: str, answer: JSON) -> Reply:
    """Return the reply in an answer; its problem if it is not what was asked for."""
    if not isinstance(answer, dict):
        return Reply(key=key, problem="the answer is no JSON object")
    named, choices = answer.get("model"), answer.get("choices")
    choice = _object(choices[0]) if isinstance(choices, list) and choices else {}
    message = _object(choice.get("message"))
    problem = _problem(choice, message)
    text = "" if problem else str(message["content"])
    model = named if isinstance(named, str) else ""
    return Reply(key=key, text=text, model=model, usage=usage_of(answer), raw=answer, problem=problem)


def usage_of(answer: JSON) -> Usage | None:
    """Return the tokens that an answer says it cost, None if it does not say."""
    usage = _object(_object(answer).get("usage"))
    details = _object(usage.get("prompt_tokens_details"))
    read, written = token_count(usage.get("prompt_tokens")), token_count(usage.get("completion_tokens"))
    cached = token_count(details.get("cached_tokens") or 0)
    if read is None or written is None or cached is None:
        return None
    return Usage(read=max(read - cached, 0), cache_read=cached, written=written)


def _object(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {}


def _problem(choice: dict[str, JSON], message: dict[str, JSON]) -> str:
    if message.get("role") != "assistant":
        return "the answer is no message of the assistant's"
    if message.get("refusal"):
        return "the model refused"
    stop = choice.get("finish_reason")
    if stop != "stop":
        return _STOPS.get(str(stop), "the answer ends for no known reason")
    text = message.get("content")
    return "" if isinstance(text, str) and text.strip() else "the answer has no text"
