"""The probe that every encoder must pass: once through the store, and asked again before each embedding."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from runner.base.canonical import JSON, json_bytes, sha256, write_atomic
from runner.base.errors import BackendError
from runner.base.records import PromptSide
from runner.base.store import Store
from runner.embed.encoder import SAME, Batch, Encoder, InProcessEncoder, Matrix, checked_encode
from runner.embed.vectors import save_array
from runner.eval_set.shapes.encoder import EncoderSpec

PROBE = 2
"""Raised when the sentences or what is kept of them change: it is part of every key."""

# Each pair says one thing twice; across pairs the sentences are strangers.
PARAPHRASES = (
    (
        "The Secretary shall award grants to States to repair rural bridges.",
        "Money is to be given to state governments for fixing bridges in the countryside.",
    ),
    (
        "A veteran who was exposed to toxic smoke may file a claim for disability compensation.",
        "Former soldiers harmed by poisonous fumes can apply for disability payments.",
    ),
    (
        "No person may harvest cod in the closed area between March and June.",
        "Catching codfish is forbidden in the protected zone during spring.",
    ),
    (
        "Each bank must report suspicious transactions within 30 days.",
        "Financial institutions have a month to notify authorities of dubious money transfers.",
    ),
)
FILLER = "The agency may issue rules under this subsection"
ENDINGS = ("bank", "water")
"""Words of one token each: what a text of exactly so many tokens ends with."""

_JOIN, _PAD = ". ", " the"
_CHANGED = (1, 8, 64)
"""How many last tokens are changed: more only if a text's row moves by itself, as batches of a busy server move it."""

UNLIMITED = 2000
"""Tokens of the longest text for an encoder without a limit."""

_CLEAR = 3.0
"""What a change must be, in multiples of what the same text moves by when it is sent again."""


def probe(encoder: Encoder) -> dict[str, JSON]:
    """Return the figures of a passed probe, similarities at 4 places, and a digest of the vectors at 3.

    Checks: shape, finiteness, unit norm; rows do not depend on the batch; if the tokens' states can be had, rows are
    those states pooled as catalogued, of texts with the catalogued prompts; every sentence is closer to its paraphrase
    than to a stranger; prompts are applied exactly where the catalogue has them; everything up to the catalogued length
    is read, and nothing past it. A BackendError names the encoder and the failed check.
    """
    # Shape, norm and finiteness are checked with every answer; then rows alone against rows in a batch.
    first, second = (checked_encode(encoder, [pair[side] for pair in PARAPHRASES]) for side in (0, 1))
    alone = np.vstack([checked_encode(encoder, [pair[0]]) for pair in PARAPHRASES])
    if (moved := np.abs(alone - first).max()) > encoder.tolerance:
        raise _failed(encoder, "batching", f"a text alone and in a batch differ by {moved:.2e} in its row")
    queries = checked_encode(encoder, [pair[0] for pair in PARAPHRASES], "query")
    prompt_shift = _prompt_shift(encoder, first, queries)
    _refuse_other_pooling(encoder, {"document": first, "query": queries})
    # On the diagonal each sentence and its paraphrase; taken off by more than a cosine can be, the strangers are left.
    cosines = first.astype(np.float64) @ second.T.astype(np.float64)
    paraphrase, stranger = np.diag(cosines), cosines - 2 * np.eye(len(cosines))
    margin = float((paraphrase - np.maximum(stranger.max(axis=0), stranger.max(axis=1))).min())
    if margin <= 0:
        why = f"a stranger is as close to a sentence as its paraphrase (margin {margin:.1e})"
        raise _failed(encoder, "paraphrases", why)
    return {
        "encoder": encoder.spec.name,
        "dim": int(first.shape[1]),
        "paraphrase_min": round(float(paraphrase.min()), 4),
        "stranger_max": round(float(stranger.max()), 4),
        "margin_min": round(margin, 4),
        "prompt_shift": round(prompt_shift, 4),
        **(_refusal(encoder) if encoder.spec.api else _truncation(encoder)),
        "digest": sha256((np.rint(np.vstack([first, second]) * 1e3) + 0.0).astype("<f8").tobytes()),
    }


def probed(store: Store, encoder: Encoder) -> dict[str, JSON]:
    """Return the probe's figures, from the store if this very encoder has passed before; see `probe`."""
    figures: dict[str, JSON] = json.loads((_probe_folder(store, encoder) / "probe.json").read_bytes())
    return figures


def refuse_changed(store: Store, encoder: Encoder) -> None:
    """Raise BackendError unless the encoder still answers as when it was probed, perhaps in an earlier session."""
    shift = float(np.abs(_canary(encoder) - np.load(_probe_folder(store, encoder) / "canary.npy")).max())
    if shift > encoder.tolerance:
        raise BackendError(
            f"{encoder.spec.name} no longer answers as it did when it was probed: vectors moved by {shift:.2e}. "
            "Delete .cache/probe and run again to probe it anew; vectors made before are not comparable."
        )


SAME_COSINE = {"float32": 0.999999}
"""By number format, the least cosine of one text's two vectors; HALF_PRECISION_COSINE for any other, or none said."""

HALF_PRECISION_COSINE = 0.9995


class Beside(NamedTuple):
    """How one encoder's vectors on two backends compare: `cosine` is the smallest of a text, which is `worst`."""

    cosine: float
    required: float
    worst: str
    difference: float

    @property
    def same(self) -> bool:
        """Whether every text's two vectors are as close as the number format there allows."""
        return self.cosine >= self.required


def beside(here: Encoder, there: Encoder) -> Beside:
    """Return how the rows of `signed_texts` on two backends compare; raise BackendError unless both pass the probe."""
    probe(there)  # first: it may not be there at all, and loading a model here takes seconds
    probe(here)
    rows = [signature(encoder).astype(np.float64) for encoder in (here, there)]
    # Both are unit rows in float32 only; a bound of 0.999999 needs their lengths in float64.
    lengths = [np.linalg.norm(each, axis=1) for each in rows]
    cosines = (rows[0] * rows[1]).sum(axis=1) / (lengths[0] * lengths[1])
    names = [f"the {side} {text[:60]!r}" for texts, side in signed_texts(here.spec) for text in texts]
    return Beside(
        cosine=float(cosines.min()),
        required=SAME_COSINE.get(there.identity()["backend"].get("dtype", ""), HALF_PRECISION_COSINE),
        worst=names[int(cosines.argmin())],
        difference=float(np.abs(rows[0] - rows[1]).max()),
    )


SIGNED_WITHIN = 2000
"""Tokens of the longest text by which an encoder is known again: a client asks for its row before its first query."""


def signed_texts(spec: EncoderSpec) -> list[tuple[list[str], PromptSide]]:
    """Return texts by whose rows an encoder is known again: sentences as documents and as queries, and one long text.

    That one is longer than what is read if this is at most SIGNED_WITHIN tokens, and ends on another matter than it
    begins with, so that whoever reads less or more of it has another row. To a service, which would refuse it, half.
    """
    sentences = [pair[0] for pair in PARAPHRASES]
    # A sentence has some 12 tokens, whatever the tokenizer.
    times = min(spec.max_tokens or SIGNED_WITHIN, SIGNED_WITHIN) // (24 if spec.api else 12)
    long = f"{sentences[0]} " * (times * 2 // 3) + f"{sentences[1]} " * (times // 3 if spec.api else times)
    return [(sentences, "document"), (sentences, "query"), ([long or FILLER], "document")]


def signature(encoder: Encoder) -> Matrix:
    """Return the rows of `signed_texts`, in their order; BackendError if the encoder fails."""
    return np.vstack([checked_encode(encoder, texts, side) for texts, side in signed_texts(encoder.spec)])


def _canary(encoder: Encoder) -> Matrix:
    return checked_encode(encoder, [pair[0] for pair in PARAPHRASES])


def _probe_folder(store: Store, encoder: Encoder) -> Path:
    def build(folder: Path) -> None:
        write_atomic(folder / "probe.json", json_bytes(probe(encoder)))
        save_array(folder / "canary.npy", _canary(encoder))

    return store.ensure("probe", {"probe": PROBE, "encoder": encoder.identity()}, build)


def _refuse_other_pooling(encoder: Encoder, rows: Mapping[PromptSide, Matrix]) -> None:
    """Raise BackendError unless the rows are what the catalogue says: prompt before the text, states of tokens pooled.

    Only an encoder in this process shows its tokens' states.
    """
    if not isinstance(encoder, InProcessEncoder):
        return
    spec = encoder.spec
    for side, measured in rows.items():
        expected = encoder.by_catalogue([spec.prompt(side) + pair[0] for pair in PARAPHRASES])
        if expected is not None and not (moved := np.abs(measured - expected).max()) <= encoder.tolerance:
            why = (
                f"a {side} with the prompt {spec.prompt(side)!r} and {spec.pooling} pooling has a row that differs by "
            )
            raise _failed(encoder, "pooling", f"{why}{moved:.2e}")


def _prompt_shift(encoder: Encoder, documents: Matrix, queries: Matrix) -> float:
    """Return the largest coordinate between a text's query and document vectors: 0.0 if the prompts are the same."""
    shifts = np.abs(queries - documents).max(axis=1)
    if not encoder.spec.tells_sides_apart:
        if shifts.max() > encoder.tolerance:
            why = f"no prompt is catalogued, yet query and document differ by {shifts.max():.2e}"
            raise _failed(encoder, "prompts", why)
        return 0.0
    if shifts.min() <= encoder.tolerance:
        why = "query and document vectors of one text are the same, so no prompt was applied"
        raise _failed(encoder, "prompts", why)
    return float(shifts.max())


def _truncation(encoder: Encoder) -> dict[str, JSON]:
    """Return where the encoder stops reading, and how many last tokens it takes to tell.

    Texts are sent one by one: the same tokens in a batch of the same shape have the same row to the last bit, so that
    one other token shows in every number format, however many there are. A backend whose rows move by themselves is
    held to changes that stand out.
    """
    limit = encoder.spec.max_tokens
    # One text four times: as it is, with its last tokens changed, with more past the limit, and as it is again.
    for n_changed in (n for n in _CHANGED if 4 * n < (limit or UNLIMITED)):
        opening = _of_length(encoder, (limit or UNLIMITED) - n_changed)
        text, changed = (opening + f" {word}" * n_changed for word in ENDINGS)
        further = text + f" {ENDINGS[1]}" * 8 * n_changed
        row, *others = (checked_encode(encoder, [each]) for each in (text, changed, further, text))
        within, past, noise = (float(np.abs(row - moved).max()) for moved in others)
        if within > _CLEAR * noise or noise == 0:
            break
    if within <= _CLEAR * noise:
        why = f"the last {n_changed} of {limit or 'any number of'} tokens move the vector by {within:.2e}, sending it "
        raise _failed(encoder, "truncation", f"{why}again by {noise:.2e}: it reads less")
    if limit and past > _CLEAR * noise:
        raise _failed(encoder, "truncation", f"text past {limit} tokens changes the vector by {past:.2e}")
    return {"truncates_at": limit, "told_by_tokens": n_changed}


LONGEST_WITHIN = 4_000
"""Tokens of the longest text that a service is sent to see that it reads to the end: each of them is paid."""


def _refusal(encoder: Encoder) -> dict[str, JSON]:
    """Return how far two endings move a text that a service takes; raise unless it refuses one of twice its limit.

    Its own tokenizer is not here, so neither length is exact.
    """
    limit = encoder.spec.max_tokens
    words = FILLER + ". "
    each = int(encoder.token_counts([words], "document")[0])
    opening = words * (min(limit // 2, LONGEST_WITHIN) // each)
    rows = checked_encode(encoder, [opening + word for word in ENDINGS])
    inside = float(np.abs(rows[0] - rows[1]).max())
    if inside <= SAME:
        raise _failed(encoder, "truncation", f"the end of a text of half of {limit} tokens does not change the vector")
    batch = Batch("document", (words * (2 * limit // each + 1),), (1,))
    for answer in encoder.embed([batch]):
        if answer.rows is not None or not answer.error.startswith("HTTP 4"):
            what = answer.error or "it was taken and cut"
            raise _failed(encoder, "truncation", f"a text of twice {limit} tokens was to be refused: {what}")
    return {"refuses_above": limit, "ending_within": round(inside, 4)}


def _of_length(encoder: Encoder, n_tokens: int) -> str:
    """Return a text of exactly so many tokens; BackendError if short words are not single tokens for this encoder."""

    def count(text: str) -> int:
        return int(encoder.token_counts([text], "document")[0])

    # The most fillers that fit, by bisection: how many tokens one adds is the tokenizer's affair. Then padding.
    low, high = 0, n_tokens
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(_JOIN.join([FILLER] * middle)) <= n_tokens else (low, middle - 1)
    text = _JOIN.join([FILLER] * low)
    text += _PAD * (n_tokens - count(text))
    if count(text) != n_tokens or count(f"{text} {ENDINGS[0]}") != n_tokens + 1:
        raise _failed(encoder, "truncation", f"no text of {n_tokens} tokens could be written")
    return text


def _failed(encoder: Encoder, check: str, why: str) -> BackendError:
    return BackendError(
        f"The probe of {encoder.spec.name} failed ({check}): {why}. Its vectors cannot be trusted and none were used; "
        "check the installed model and library versions against the catalogue, and run the command again."
    )
