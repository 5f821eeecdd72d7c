"""How a check of the substrate says what it found."""

from collections.abc import Sequence

from runner.substrate.shapes import FindingResult

EXAMPLES = 5
"""Examples a finding names at most."""


def finding(
    name: str, examples: Sequence[str], of: int, what: str, so: str = "", *, count: int | None = None
) -> FindingResult:
    """A fault if there is anything to count, with the sentence "{count} of {of} {what}", then what follows of it.

    `count` is the number of examples if it is not given.
    """
    count = len(examples) if count is None else count
    sentence = f"{count:,} of {of:,} {what}{f': {so}' if count and so else ''}."
    return note(name, count, of, sentence, examples, fault=count > 0)


def note(
    name: str, count: int, of: int, sentence: str, examples: Sequence[str] = (), *, fault: bool = False
) -> FindingResult:
    """A finding with a sentence of its own, and the first EXAMPLES of its examples; a note unless it is a `fault`."""
    few = list(examples[:EXAMPLES])
    return FindingResult(name=name, fault=fault, count=count, of=of, sentence=sentence, examples=few)


def chunk_names(ids: Sequence[int]) -> list[str]:
    """Chunks as examples name them."""
    return [f"chunk {chunk_id}" for chunk_id in ids]
