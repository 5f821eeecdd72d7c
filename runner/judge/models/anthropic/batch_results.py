"""The results of a message batch, held against what was handed in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from runner.base.canonical import JSON
from runner.judge.models.anthropic.replies import reply_of, usage_of
from runner.judge.models.requests import Reply, Usage
from runner.judge.models.service import Unreadable, received

_ENDS = {
    "expired": "the batch expired before the request was reached",
    "canceled": "the batch was cancelled before the request was reached",
}


@dataclass
class Results:
    """Results by custom id; `refused` counts lines that are no result of this batch, or contradict another."""

    by_id: dict[str, JSON] = field(default_factory=dict)
    contradicted: set[str] = field(default_factory=set)
    refused: int = 0

    def reply(self, name: str, key: str, model: str) -> Reply:
        """The reply to one request; its problem where there is none to use. Its key is `key`."""
        if name in self.contradicted:
            return Reply(key, "", "", problem="the batch has two different results for it")
        result = self.by_id.get(name)
        if result is None:
            return Reply(key, "", "", problem="the batch has no result for it")
        kind = result.get("type")
        if kind == "succeeded":
            return reply_of(key, model, result.get("message"))
        if kind == "errored":
            return _errored(key, result)
        return Reply(key, "", "", raw=result, problem=_ENDS.get(str(kind), "the batch has a result of no known kind"))

    def usages(self, names: list[str]) -> list[Usage | None]:
        """What was charged: a usage for each request that was answered, None where its cost is not known."""
        charged: list[Usage | None] = []
        for name in names:
            result = self.by_id.get(name)
            if result is None or name in self.contradicted:
                charged.append(None)
            elif result.get("type") == "succeeded":
                charged.append(usage_of(result.get("message")))
        return charged


def read_results(lines: str, known: Mapping[str, object]) -> Results:
    """The results in a batch's file, in any order; the same line twice counts once."""
    results = Results()
    for row in _rows(lines):
        name = row.get("custom_id") if isinstance(row, dict) else None
        result = row.get("result") if isinstance(row, dict) else None
        if not isinstance(name, str) or name not in known or not isinstance(result, dict):
            results.refused += 1
        elif results.by_id.setdefault(name, result) != result:
            results.refused += 1
            results.contradicted.add(name)
    return results


def custom_ids(lines: str) -> set[str]:
    """The ids that a batch's file names."""
    return {str(row.get("custom_id")) for row in _rows(lines) if isinstance(row, dict)}


def _rows(lines: str) -> Iterator[JSON]:
    for line in lines.split("\n"):
        if line.strip():
            try:
                yield received(line)
            except Unreadable:
                yield None


def _errored(key: str, result: dict[str, JSON]) -> Reply:
    error = result.get("error")
    inner = error.get("error") if isinstance(error, dict) else None
    kind = inner.get("type") if isinstance(inner, dict) else "unknown"
    words = str(inner.get("message", ""))[:300] if isinstance(inner, dict) else ""
    return Reply(
        key, "", "", raw=result, problem=f"the request failed: {kind}: {words}", final=kind == "invalid_request_error"
    )
