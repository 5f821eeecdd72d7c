"""What is compared between a backend's vectors and this machine's, and what each difference means."""

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from runner.base.schema import FrozenModel
from runner.embed.encoder import SAME, UNIT_TOLERANCE, Matrix
from runner.embed.parity.texts import SHARED, UNLIMITED, Texts
from runner.eval_set.catalog import EncoderSpec

HALF_PRECISION_COSINE = 0.9995
"""The least cosine of two vectors of one text in half precision, or from a server that does not say its format."""

FLOAT32_COSINE = 0.999999
FLOAT32_NORM = 1e-5

PROMPT_COSINE = 0.9
PROMPT_RATIO = 2.0
"""What a prompt does to a vector is large against rounding: it points the same way and is about as long."""

Floats = NDArray[np.float64]


class ParityCheck(FrozenModel):
    """One thing compared; `said` has the figures and the text that they are of."""

    name: Literal["tokens", "cosine", "norms", "prompts", "truncation"]
    passed: bool
    said: str


class ParityRows(NamedTuple):
    """The 32 texts from one encoder: rows (16, dim) per side, tokens (32,) with documents first, and where it ran."""

    documents: Matrix
    queries: Matrix
    n_tokens: NDArray[np.int64]
    facts: Mapping[str, str]

    @property
    def rows(self) -> Floats:
        """All rows (32, dim), documents first."""
        return np.vstack([self.documents, self.queries]).astype(np.float64)


class Compared(NamedTuple):
    """The texts embedded `here` and `there`; `noise` is what a coordinate may move between two sessions there."""

    spec: EncoderSpec
    texts: Texts
    here: ParityRows
    there: ParityRows
    is_float32: bool
    noise: float

    @property
    def required(self) -> float:
        """The least cosine that is allowed."""
        return FLOAT32_COSINE if self.is_float32 else HALF_PRECISION_COSINE

    @property
    def names(self) -> list[str]:
        """What messages call each text, documents first."""
        documents = [f"the document {row.name!r}" for row in self.texts.documents]
        return documents + [f"the query {row.name!r}" for row in self.texts.queries]

    @property
    def cosines(self) -> Floats:
        """Of each text's two rows, (32,)."""
        here, there = self.here.rows, self.there.rows
        products: Floats = (here * there).sum(axis=1)
        cosines: Floats = products / (np.linalg.norm(here, axis=1) * np.linalg.norm(there, axis=1))
        return cosines

    @property
    def norm_errors(self) -> Floats:
        """How far each remote row's length is from 1, (32,)."""
        errors: Floats = np.abs(np.linalg.norm(self.there.rows, axis=1) - 1)
        return errors


def tokens(compared: Compared) -> ParityCheck:
    """Every text has as many tokens there as here."""
    here, there = compared.here.n_tokens, compared.there.n_tokens
    differing = np.flatnonzero(here != there)
    if not len(differing):
        return ParityCheck(name="tokens", passed=True, said=f"{int(here.sum())} on both sides")
    first = int(differing[0])
    said = (
        f"{len(differing)} of {len(here)} texts are cut otherwise, {compared.names[first]} into {int(there[first])} "
        f"instead of {int(here[first])}: another tokenizer, or another prompt"
    )
    return ParityCheck(name="tokens", passed=False, said=said)


def cosine(compared: Compared) -> ParityCheck:
    """Every text's two vectors are as close as the number format allows."""
    cosines = compared.cosines
    low = int((cosines < compared.required).sum())
    said = f"{compared.names[int(cosines.argmin())]} has {cosines.min():.6f}, at least {compared.required} is asked for"
    if low:
        said += f"; {low} of {len(cosines)} texts are below"
    return ParityCheck(name="cosine", passed=not low, said=said)


def norms(compared: Compared) -> ParityCheck:
    """Every vector is a unit vector."""
    errors, bound = compared.norm_errors, FLOAT32_NORM if compared.is_float32 else UNIT_TOLERANCE
    worst = int(errors.argmax())
    said = f"{compared.names[worst]} is {errors[worst]:.1e} off a length of 1, at most {bound:.0e} is allowed"
    return ParityCheck(name="norms", passed=bool(errors[worst] <= bound), said=said)


def prompts(compared: Compared) -> ParityCheck:
    """The eight texts that are documents and queries: the side changes each vector there as it does here."""
    here, there = (_prompt_shifts(rows) for rows in (compared.here, compared.there))
    query, document = compared.spec.query_prompt, compared.spec.document_prompt
    largest = float(np.abs(there).max())
    if query == document:
        said = f"none are catalogued, and query and document vectors of one text differ by {largest:.1e} at most"
        return ParityCheck(name="prompts", passed=largest <= compared.noise, said=said)
    if largest <= compared.noise:
        said = f"query and document vectors of one text are the same: {query or document!r} is not applied"
        return ParityCheck(name="prompts", passed=False, said=said)
    direction, ratio = _alike(here, there)
    passed = direction >= PROMPT_COSINE and max(ratio, 1 / ratio) <= PROMPT_RATIO
    said = (
        f"what they change has a cosine of {direction:.3f} to what they change here, and {ratio:.2f} times its length"
    )
    if not passed:
        said += ": another prompt is applied, or this one twice, or to the other side"
    return ParityCheck(name="prompts", passed=passed, said=said)


def truncation(compared: Compared) -> ParityCheck:
    """Words past the limit change nothing there, and the last ones within it what they change here."""
    (first, second), past = compared.texts.at_limit, compared.texts.past_limit
    limit = compared.spec.max_tokens
    there, here = compared.there.documents.astype(np.float64), compared.here.documents
    beyond = float(np.abs(there[past] - there[first]).max())
    within, within_here = there[first] - there[second], here[first].astype(np.float64) - here[second]
    typical = float(np.median(np.linalg.norm(compared.there.rows - compared.here.rows, axis=1)))
    lost = float(np.linalg.norm(within - within_here))
    said = (
        f"the last words of a text of {limit or UNLIMITED} tokens change its vector by "
        f"{np.linalg.norm(within):.1e}, here by {np.linalg.norm(within_here):.1e}"
    )
    # Rounding, as the other texts show it, is no sign of a cut: with 8,192 tokens the last words are as small.
    passed = lost <= float(np.linalg.norm(within_here)) / 2 + 4 * typical
    if not passed:
        said += ": it reads less of a text"
    if limit:
        said += f"; words past the limit by {beyond:.1e}"
        if beyond > compared.noise:
            passed, said = False, said + ": it reads on"
    return ParityCheck(name="truncation", passed=passed, said=said)


CHECKS: tuple[Callable[[Compared], ParityCheck], ...] = (tokens, cosine, norms, prompts, truncation)


def _prompt_shifts(rows: ParityRows) -> Floats:
    """Query less document vector of the texts of both sides."""
    n_shared = len(SHARED)
    return rows.queries[:n_shared].astype(np.float64) - rows.documents[:n_shared]


def _alike(here: Floats, there: Floats) -> tuple[float, float]:
    """The smallest cosine of a pair of rows, and the ratio of lengths that is farthest from 1."""
    lengths, lengths_here = (np.maximum(np.linalg.norm(rows, axis=1), SAME) for rows in (there, here))
    ratios = lengths / lengths_here
    cosines = (here * there).sum(axis=1) / (lengths * lengths_here)
    return float(cosines.min()), float(ratios[np.abs(np.log(ratios)).argmax()])
