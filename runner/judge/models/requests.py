"""What is asked of a language model and what comes back, whoever serves it."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import Field

from runner.base.schema import Count, FrozenModel


@dataclass(frozen=True)
class Ask:
    """One request; `key` is unique within a call, `system` the same for all of it.

    `schema` is the JSON schema of the answer, one JSON object of at most `max_tokens`.
    """

    key: str
    system: str
    user: str
    schema: Mapping[str, Any]
    max_tokens: int


class Usage(FrozenModel):
    """Tokens of one request, as the service counted them; cached ones are in no other figure."""

    read: Count = 0
    cache_written: Count = 0
    cache_read: Count = 0
    written: Count = 0

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.read + self.cache_written + self.cache_read + self.written


class Reply(FrozenModel):
    """What came back for one ask: `text` is what the model wrote, `raw` the whole answer as received, without secrets.

    `usage` is None if nobody says. `problem` says why there is no text to use (refused, cut off, the request failed
    again and again), "" for none; `final` that asking again would not help.
    """

    key: str
    text: str = ""
    model: str = ""
    usage: Usage | None = None
    raw: dict[str, Any] = Field(default_factory=dict)
    problem: str = ""
    final: bool = Field(default=False, exclude=True)


class LanguageModel(Protocol):
    """A model behind an API; `runner.judge.models.client.JudgeClient` is the one in use."""

    @property
    def model(self) -> str:
        """The id that is asked for."""

    def replies(self, asks: Sequence[Ask]) -> Iterator[Reply]:
        """Yield one reply per ask, as they arrive; a BackendError if no further request would fare better."""


def unique(asks: Sequence[Ask]) -> None:
    """Raise a ValueError if a key would name two replies."""
    repeated = [key for key, count in Counter(ask.key for ask in asks).items() if count > 1]
    if repeated:
        raise ValueError(f"{len(repeated)} keys name several asks, such as {repeated[0]!r}")
