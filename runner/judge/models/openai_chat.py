"""A language model asked through an OpenAI-compatible server: POST /chat/completions."""

import json
import threading
from dataclasses import replace

from runner.base.canonical import JSON
from runner.base.http_client import Service
from runner.base.progress import say
from runner.embed.cost.prices import Usage
from runner.judge.models.claude import THINKING_ROOM
from runner.judge.models.client import JUDGE_KEY, URL_FLAG, Ask, JudgeClient, Reply, as_object, token_count

_SPARED = frozenset(("max_tokens", "temperature"))
"""Fields that a model which thinks may refuse; it takes max_completion_tokens, and no temperature but its own."""

_STOPS = {
    "length": "the answer was cut off at the limit of tokens",
    "content_filter": "the server's filter withheld the answer",
    "tool_calls": "the model called a tool, and there is none",
}


class OpenAIChat(JudgeClient):
    """The model of a server, whose address may end in /v1 or in /chat/completions.

    The first answer's model is the session's: a reply of another one has a problem.
    """

    service = Service(
        URL_FLAG,
        JUDGE_KEY,
        "Either the model is not served under this name, or the path is wrong: POST /v1/chat/completions is asked "
        "(vLLM, llama.cpp, Ollama, OpenRouter). Check --judge-url and the judge's model id in plan.yaml.",
    )
    _answering = ""
    _refused: frozenset[str] = frozenset()
    """Those of _SPARED that the server has refused by name."""

    def endpoint(self, url: str) -> str:
        """Return where the chat is asked."""
        if url.endswith("/chat/completions"):
            return url
        return f"{url if url.endswith('/v1') else url + '/v1'}/chat/completions"

    def check(self) -> str:
        """Ask for the list of models, or without a key for a word, which nobody can be charged for.

        Some services show their models to anybody.
        """
        if self.http.secret.value:
            return self.http.check_key(self.url.removesuffix("/chat/completions") + "/models")
        word = self.request(Ask("", "", "word", {"type": "object"}, 1))
        return self.http.check_key(self.url, json.dumps(word).encode())

    def request(self, ask: Ask) -> JSON:
        """Return what asks for one answer in the schema's form."""
        form = {"name": "answer", "strict": True, "schema": dict(ask.schema)}
        return {
            "model": self.model,
            "messages": [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.user}],
            "response_format": {"type": "json_schema", "json_schema": form},
            "max_completion_tokens" if "max_tokens" in self._refused else "max_tokens": ask.max_tokens,
            **({} if "temperature" in self._refused else {"temperature": 0}),
        }

    def sent(self, ask: Ask) -> Ask:
        """Return the ask with room to think, if the model seems to."""
        return replace(ask, max_tokens=ask.max_tokens + THINKING_ROOM) if "max_tokens" in self._refused else ask

    def _reply(self, ask: Ask, stopped: threading.Event) -> Reply:
        """Return what becomes of one ask; a refusal that names a field of _SPARED costs nothing and is met without."""
        while True:
            known = self._refused
            reply = super()._reply(ask, stopped)
            named = {name for name in _SPARED if reply.final and name in reply.problem}
            if named <= known:
                return reply
            with self.lock:
                if not named <= self._refused:
                    say(f"{self.model} refuses {' and '.join(sorted(named))}, and is asked without.")
                self._refused |= named

    def read(self, ask: Ask, answer: JSON) -> Reply:
        """Return the reply in a completion; its problem if it is not what was asked for, or of another model."""
        if not isinstance(answer, dict):
            return Reply(key=ask.key, problem="the answer is no JSON object")
        choices = answer.get("choices")
        choice = as_object(choices[0]) if isinstance(choices, list) and choices else {}
        message = as_object(choice.get("message"))
        model = answer["model"] if isinstance(answer.get("model"), str) else ""
        problem = _problem(choice, message)
        # A gateway may change models behind one name, and two models grade on two scales.
        with self.lock:
            self._answering = self._answering or model
            if not problem and model != self._answering:
                problem = f"{model or 'a model without a name'} answered, another one did before"
        text = "" if problem else str(message["content"])
        return Reply(key=ask.key, text=text, model=model, usage=_usage(answer), raw=answer, problem=problem)


def _usage(answer: JSON) -> Usage | None:
    """Return the tokens that an answer says it cost, None if it does not say."""
    usage = as_object(as_object(answer).get("usage"))
    # prompt_tokens holds the cached ones, which have their own price.
    details = as_object(usage.get("prompt_tokens_details"))
    read, written = token_count(usage.get("prompt_tokens")), token_count(usage.get("completion_tokens"))
    cached = token_count(details.get("cached_tokens") or 0)
    if read is None or written is None or cached is None:
        return None
    return Usage(read=max(read - cached, 0), cache_read=cached, written=written)


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
