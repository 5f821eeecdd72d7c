"""Rows of batches in invented words, and a language model in this process that can be told to fail."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from runner.base.canonical import file_sha256
from runner.base.errors import BackendError
from runner.base.records import Document, Span
from runner.embed.cost.prices import Usage
from runner.eval_set.batches import Shown, batch_files, make_row, read_batch, rebound, write_batches
from runner.eval_set.corpus import corpus_documents
from runner.eval_set.shapes.labels import BatchRow
from runner.eval_set.version import Version, load_queries
from runner.judge.models.client import Ask, Reply

PROMPT = "ab" * 32
JUDGE = "claude-example-1"
SERVED = "claude-example-1-20250101"


def row(
    texts: Sequence[str] = ("The warden counts geese.", "Fees are paid in eggs."),
    query: str = "who counts the geese",
    title: str = "Goose Warden Act",
    batch: str = "batch-0001",
    query_id: str = "q01",
) -> BatchRow:
    """A row whose passages are these texts; its digests are real."""
    made = make_row("demo v1", PROMPT, (query_id, query), Document("d1", "x", title, "", "", ""), Shown((Span(0, 1),)))
    start, evidence = 0, []
    for number, text in enumerate(texts, start=1):
        evidence.append({"number": number, "left_out": 0, "start": start, "end": start + len(text), "text": text})
        start += len(text) + 1
    return rebound(BatchRow.model_validate({**made.model_dump(), "evidence": evidence}), batch)


def said(grade: object = 2, reason: object = "Section 4 counts them.", passages: object = (1,), **more: object) -> str:
    """A reply's text."""
    return json.dumps({"passages": list(passages), "reason": reason, "grade": grade, **more})  # type: ignore[call-overload]


def small_batches(version: Version, pairs: int, at_once: int) -> dict[str, list[BatchRow]]:
    """Batches of a small set's first pairs, written and read again."""
    documents = sorted(corpus_documents(version, None), key=lambda document: document.doc_id)
    prompt = file_sha256(version.judge_path)
    asked = islice(product(load_queries(version.queries_path), documents), pairs)
    rows = [
        make_row(version.number_name, prompt, (query.id, query.text), document, Shown((Span(0, len(document.text)),)))
        for query, document in asked
    ]
    for start in range(0, len(rows), at_once):
        write_batches(version.judging, rows[start : start + at_once])
    return {path.stem: read_batch(path) for path in batch_files(version.judging)}


def grade_of(user: str) -> dict[str, object]:
    """A grade from an ask's text alone: how many of the query's words stand in the rest of it."""
    mark = user.split("\n", 1)[0].rsplit(" ", 1)[-1]
    _, query, *rest = user.split(f"\n{mark} ")
    words = {word for word in query.split()[1:] if len(word) > 3}
    found = sum(word in " ".join(rest) for word in words)
    return {"passages": [1] if found else [], "reason": f"{found} of {len(words)} words", "grade": min(found, 3)}


Fault = Callable[[Ask], Reply]


@dataclass
class Model:
    """`always` holds replies to asks with a word in their user text; all others are right."""

    model: str = JUDGE
    always: dict[str, Fault] = field(default_factory=dict)
    stop_after: int | None = None
    stop_with: BaseException = field(default_factory=lambda: BackendError("the key was refused."))
    calls: list[list[Ask]] = field(default_factory=list)
    open_calls: int = 0

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    @property
    def asked(self) -> list[str]:
        """The keys of all asks that were answered, in order."""
        return [ask.key for call in self.calls for ask in call]

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        call: list[Ask] = []
        self.calls.append(call)
        self.open_calls += 1
        try:
            for ask in asks:
                if self.stop_after is not None and len(self.asked) >= self.stop_after:
                    raise self.stop_with
                call.append(ask)
                yield self._reply(ask)
        finally:
            self.open_calls -= 1

    def _reply(self, ask: Ask) -> Reply:
        for word, fault in self.always.items():
            if word in ask.user:
                return fault(ask)
        return right(ask)


def right(ask: Ask) -> Reply:
    """A reply whose grade follows from the ask."""
    return as_reply(ask, json.dumps(grade_of(ask.user)))


def as_reply(ask: Ask, text: str, problem: str = "", *, final: bool = False) -> Reply:
    """A reply as a service would have it."""
    return Reply(
        key=ask.key,
        text=text,
        model=SERVED,
        usage=Usage(read=900, cache_read=600, written=40),
        raw={"id": f"msg-{ask.key[:6]}"},
        problem=problem,
        final=final,
    )


def prose(ask: Ask) -> Reply:
    """An answer with words around it."""
    return as_reply(ask, f"Here you are: {right(ask).text}")


def refused(ask: Ask) -> Reply:
    """No text."""
    return as_reply(ask, "", "it was refused (stop_reason refusal)")


def too_long(ask: Ask) -> Reply:
    """No text, and none to come."""
    return as_reply(ask, "", "the request is too long", final=True)
