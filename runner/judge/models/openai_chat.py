"""A language model asked through an OpenAI-compatible server: POST /chat/completions."""

import json

from runner.base.canonical import JSON
from runner.base.http_client import Service
from runner.embed.cost.prices import Usage
from runner.judge.models.client import JUDGE_KEY, URL_FLAG, Ask, JudgeClient, Reply, as_object, token_count

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

    def endpoint(self, url: str) -> str:
        """Return where the chat is asked."""
        if url.endswith("/chat/completions"):
            return url
        return f"{url if url.endswith('/v1') else url + '/v1'}/chat/completions"

    def check(self) -> None:
        """Ask for the list of models, or without a key for a word, which nobody can be charged for.

        Some services show their models to anybody.
        """
        if self.http.secret.value:
            self.http.check_key(self.url.removesuffix("/chat/completions") + "/models")
        else:
            word = self.request(Ask("", "", "word", {"type": "object"}, 1))
            self.http.check_key(self.url, json.dumps(word).encode())

    def request(self, ask: Ask) -> JSON:
        """Return what asks for one answer in the schema's form."""
        form = {"name": "answer", "strict": True, "schema": dict(ask.schema)}
        return {
            "model": self.model,
            "messages": [{"role": "system", "content": ask.system}, {"role": "user", "content": ask.user}],
            "response_format": {"type": "json_schema", "json_schema": form},
            "max_tokens": ask.max_tokens,
            "temperature": 0,
        }

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
