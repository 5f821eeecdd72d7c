"""What is asked of a language model and what comes back, whoever serves it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self


@dataclass(frozen=True)
class Ask:
    """One request. `key` names its reply and is unique within a call; `system` is the same for all asks of a call.

    `schema` is the JSON schema of the answer, whose text is one JSON object; `max_tokens` is the most that the model
    may write.
    """

    key: str
    system: str
    user: str
    schema: Mapping[str, Any]
    max_tokens: int


@dataclass(frozen=True)
class Usage:
    """Tokens of one request, as the service counted them; cached ones are in no other figure."""

    read: int = 0
    cache_written: int = 0
    cache_read: int = 0
    written: int = 0


@dataclass(frozen=True)
class Reply:
    """What came back for one ask: `text` is what the model wrote, `raw` the whole answer as received, without secrets.

    `problem` says why there is no text to use (refused, cut off, the request failed again and again), "" for none;
    `final` that asking again would not help.
    """

    key: str
    text: str
    model: str
    usage: Usage = Usage()
    raw: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    final: bool = False


class LanguageModel(Protocol):
    """A model behind an API; closing it lets go of its connections and of what it has running there."""

    @property
    def model(self) -> str:
        """The id that is asked for."""
        ...

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """One reply an ask, as they arrive. A BackendError where no further request would fare better."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
