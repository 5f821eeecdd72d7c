"""The file of a message batch's results, read into replies and what each of them cost."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from runner.base.canonical import JSON
from runner.base.http_client import Unusable
from runner.judge.models.anthropic.wire import reply_of, usage_of
from runner.judge.models.client import received
from runner.judge.models.requests import Reply, Usage

_ENDS = {
    "expired": "the batch expired before the request was reached",
    "canceled": "the batch was cancelled before the request was reached",
}


class Results(NamedTuple):
    """Results by custom id; `refused` counts lines that are no result of this batch, or contradict another."""

    by_id: dict[str, dict[str, JSON]]
    contradicted: set[str]
    refused: int

    def reply(self, name: str, key: str, model: str) -> Reply:
        """Return the reply to one request, as the ask of `key`; its problem if there is none to use."""
        if name in self.contradicted:
            return Reply(key=key, problem="the batch has two different results for it")
        if name not in self.by_id:
            return Reply(key=key, problem="the batch has no result for it")
        result = self.by_id[name]
        kind = str(result.get("type"))
        if kind == "succeeded":
            return reply_of(key, model, result.get("message"))
        if kind != "errored":
            return Reply(key=key, raw=result, problem=_ENDS.get(kind, "the batch has a result of no known kind"))
        # The error stands in an envelope of the same name.
        error = _object(_object(result.get("error")).get("error"))
        problem = f"the request failed: {error.get('type', 'unknown')}: {str(error.get('message', ''))[:300]}"
        return Reply(key=key, raw=result, problem=problem, final=error.get("type") == "invalid_request_error")

    def usages(self, names: Iterable[str]) -> list[Usage | None]:
        """Return a usage for each request that was charged, None where its cost is not known."""
        charged: list[Usage | None] = []
        for name in names:
            if name not in self.by_id or name in self.contradicted:
                charged.append(None)
            elif self.by_id[name].get("type") == "succeeded":
                charged.append(usage_of(self.by_id[name].get("message")))
        return charged


def read_results(lines: str, names: Iterable[str]) -> Results:
    """Return the results of the requests of these names, in any order; the same line twice counts once."""
    known = set(names)
    by_id: dict[str, dict[str, JSON]] = {}
    contradicted: set[str] = set()
    refused = 0
    for row in _rows(lines):
        name, result = row.get("custom_id"), row.get("result")
        if not isinstance(name, str) or name not in known or not isinstance(result, dict):
            refused += 1
        elif by_id.setdefault(name, result) != result:
            refused += 1
            contradicted.add(name)
    return Results(by_id, contradicted, refused)


def _rows(lines: str) -> Iterator[dict[str, JSON]]:
    """Yield each line's object, an empty one for a line that holds none."""
    for line in filter(str.strip, lines.split("\n")):
        try:
            yield _object(received(line))
        except Unusable:
            yield {}


def _object(value: JSON) -> dict[str, JSON]:
    return value if isinstance(value, dict) else {}
