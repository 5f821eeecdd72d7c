"""The shape of judging: judges in the plan, batches, answers, labels.jsonl."""

import re
from typing import Annotated, Any, Self

from pydantic import Field

from runner.base.schema import Count, FrozenModel, Sha256, Sparse

Grade = Annotated[int, Field(ge=0, le=3)]
CharacterSpan = Annotated[list[Count], Field(min_length=2, max_length=2)]
"""[start, end] in characters of the document."""


_DATED = re.compile(r"-\d{8}$")


def undated(model: str) -> str:
    """Return a model's id without the date at its end."""
    return _DATED.sub("", model)


def is_same_model(asked: str, answered: str) -> bool:
    """Return whether one id stands for the other: they differ by a date at most."""
    return asked == answered or (undated(asked) == undated(answered) and asked in (undated(asked), undated(answered)))


_FAMILIES = {
    name: family
    for family, names in {
        "claude": "claude",
        "command": "command",
        "deepseek": "deepseek",
        "gemini": "gemini gemma",
        "gpt": "gpt chatgpt o",
        "grok": "grok",
        "llama": "llama",
        "mistral": "mistral mixtral ministral magistral codestral",
        "nova": "nova",
        "phi": "phi",
        "qwen": "qwen qwq",
    }.items()
    for name in names.split()
}
"""Families of models by the words that their names begin with; o1 and o3 are OpenAI's."""


def family(model: str) -> str:
    """Return the family of a model, whose members count as one reader: the first word of its name that is known.

    A name without such a word is a family of its own.

    >>> family("meta-llama/Llama-3.1-70B"), family("claude-opus-4-6-20260101"), family("house-judge-20260101")
    ('llama', 'claude', 'house-judge')
    """
    words = re.findall("[a-z]+", model.lower())
    return next((_FAMILIES[word] for word in words if word in _FAMILIES), undated(model))


APIS = ("anthropic", "openai", "files")
"""What judges are asked through."""


class JudgeSpec(FrozenModel):
    """A language model that judges: what it is asked through, one of APIS, and its id there.

    One with `files` is asked by nobody: it reads what is exported and hands in answer files.
    """

    api: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")]
    model: Annotated[str, Field(pattern=r"^[!-~]+$")]

    @property
    def by_file(self) -> bool:
        """Whether its answers come as files."""
        return self.api == "files"


class SecondJudgeSpec(JudgeSpec):
    """One that reads a share of the judged pairs once more, and does not see the first grades."""

    share: Annotated[float, Field(gt=0, le=1)]


class Judges(Sparse):
    """Who judges. A label's judge is the model that was asked: a second one that is asked is another model."""

    first: JudgeSpec
    second: SecondJudgeSpec | None = None

    @property
    def each(self) -> list[JudgeSpec]:
        """The first one, and the second if there is one."""
        return [self.first, *([self.second] if self.second else [])]


FULLER_BATCH = "fuller-"
"""What the names of batches of fuller readings begin with."""


class Passage(FrozenModel):
    """A part of a document that a judge is shown; `number` counts from 1 within its row.

    `left_out` are the characters right before it that are not shown.
    """

    number: Annotated[int, Field(ge=1)]
    left_out: Count
    start: Count
    end: Count
    text: str


class BatchRow(FrozenModel):
    """One pair to be judged, as a batch file has it: all that a judge needs, and what binds the answer to it.

    Of the document's `n_chars` characters `left_out` are not shown; `shown_by` says by which rule the others were
    chosen. `evidence_sha256` is the digest of these and of the evidence, `row_sha256` that of all other fields: an
    edited row is refused.
    """

    batch: str
    version: str
    prompt_sha256: Sha256
    query_id: str
    query: str
    doc_id: str
    title: str
    n_chars: Count
    left_out: Count
    shown_by: str
    evidence: list[Passage]
    evidence_sha256: Sha256
    row_sha256: Sha256

    @property
    def is_fuller(self) -> bool:
        """Whether it shows more of a document that left a doubt."""
        return self.batch.startswith(FULLER_BATCH)

    @property
    def pair(self) -> tuple[str, str]:
        """Query and document."""
        return (self.query_id, self.doc_id)


class Answer(FrozenModel):
    """A row of a judge's answer file: what a label says, as far as the judge says it.

    Supporting passages are named by their numbers in the batch (`passages`), or as characters of the document
    (`spans`). `doubt` says that the deciding part may be in what is not shown. `batch`, `version`, `prompt_sha256` and
    `evidence_sha256` may repeat what the batch says; then they are held against it.
    """

    query_id: str
    doc_id: str
    grade: Grade
    reason: str = ""
    doubt: bool = False
    judge: str = ""
    model: str = ""
    round: Annotated[int, Field(ge=1, le=9)] | None = None
    passages: list[int] = Field(default_factory=list)
    spans: list[CharacterSpan] = Field(default_factory=list)
    batch: str = ""
    version: str = ""
    prompt_sha256: str = ""
    evidence_sha256: str = ""


LabelKey = tuple[str, str, str, int, bool]


class Label(Sparse):
    """A row of labels.jsonl; query, document, judge, round and whether it is of a fuller reading are its key.

    `model` is empty if a person judged. `doubt`: the deciding part may be in what was not shown. A row that is `void`
    takes back the one before it of the same key; its `reason` says why. `host` is where the model was asked, if not at
    its service's own address.
    """

    query_id: str
    doc_id: str
    grade: Grade
    reason: str
    judge: Annotated[str, Field(min_length=1)]
    model: str
    prompt_sha256: Sha256
    evidence_sha256: Sha256
    spans: list[CharacterSpan] = Field(default_factory=list)
    round: Annotated[int, Field(ge=1)] = 1
    batch: str
    judged_on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
    void: bool = False
    host: str = ""
    doubt: bool = False

    @property
    def is_fuller(self) -> bool:
        """Whether it is of a pair that was in doubt, read again with more of its document."""
        return self.batch.startswith(FULLER_BATCH)

    @property
    def key(self) -> "LabelKey":
        """What may occur once in a version."""
        return (self.query_id, self.doc_id, self.judge, self.round, self.is_fuller)

    @property
    def pair(self) -> tuple[str, str]:
        """Query and document."""
        return (self.query_id, self.doc_id)

    @classmethod
    def answering(cls, row: BatchRow, **fields: Any) -> Self:  # noqa: ANN401  # the other fields
        """Return the label of an exported row, bound to what was shown; a round of 0 is still to be found."""
        # From the row and not from the answer, so that a label binds what was shown.
        bound = {
            name: getattr(row, name) for name in ("query_id", "doc_id", "prompt_sha256", "evidence_sha256", "batch")
        }
        return cls.model_construct(None, **bound, **fields)


class LabelPrefix(Sparse):
    """Which lines of labels.jsonl are meant: how many from the first on, and their digest."""

    lines: Count
    sha256: Sha256
