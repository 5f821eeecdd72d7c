"""Whether a backend makes the vectors that this machine makes: 32 fixed texts embedded on both, and compared.

The record is stored under the identity of the backend's encoder, so that every cell it embeds can name it.
"""

import logging
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from runner.base import canonical
from runner.base.canonical import JSON, json_bytes, read_json, write_atomic
from runner.base.errors import BackendError, InputError
from runner.base.records import PromptSide
from runner.base.schema import FrozenModel, Sha256, checked
from runner.base.store import Store, disk_errors
from runner.embed.batches import TextSet, planned, token_counts, tokens_read
from runner.embed.encoder import Encoder, Matrix, checked_rows
from runner.embed.parity.checks import CHECKS, Compared, ParityCheck, ParityRows
from runner.embed.parity.texts import Text, Texts, parity_texts

FORMAT = 1
"""Raised when the texts or what is compared change: it is part of every key."""

_PASSED, _FAILED = "parity.json", "failed.json"
_log = logging.getLogger(__name__)


class Parity(FrozenModel):
    """parity.json: how the vectors of a backend and those of this machine compare.

    `local` and `remote` are what the two backends say of themselves, `served` what the remote one's answers said of
    where they ran. `cosine_min` is the smallest cosine of two vectors of one text, which is `worst`; `norm_error_max`
    the farthest that a remote vector's length is from 1; `difference_max` the largest difference of two coordinates.
    """

    schema_version: Literal[1]
    encoder: str
    texts_sha256: Sha256
    local: dict[str, Any]
    remote: dict[str, Any]
    served: dict[str, str]
    cosine_required: float
    cosine_min: float
    worst: str
    norm_error_max: float
    difference_max: float
    checks: Annotated[list[ParityCheck], Field(min_length=1)]
    checked_on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]

    @property
    def passed(self) -> bool:
        """Whether every check did."""
        return all(check.passed for check in self.checks)

    @property
    def sha256(self) -> str:
        """Digest of all but the day: the same figures on another day have the same one."""
        return canonical.sha256(json_bytes(self.model_dump(exclude={"checked_on"})))


def n_tokens(local: Encoder) -> int:
    """How many tokens of the texts are read, both sides together."""
    texts, limit = _texts(local), local.spec.max_tokens
    counts = [
        local.token_counts([row.text for row in texts.documents], "document"),
        local.token_counts([row.text for row in texts.queries], "query"),
    ]
    return int(tokens_read(np.concatenate(counts), limit).sum())


def parity(local: Encoder, remote: Encoder, *, today: str) -> Parity:
    """How two encoders of one catalogued row compare; both embed, the remote one first, whatever a store may hold.

    A BackendError if one leaves a text out, returns rows of another shape, or answers from two kinds of machine.
    """
    spec, backend = local.spec, dict(remote.identity()["backend"])
    texts = _texts(local)
    there = _embedded(remote, texts)  # it may not be there at all, and loading a model here takes seconds
    compared = Compared(
        spec=spec,
        texts=texts,
        here=_embedded(local, texts),
        there=there,
        is_float32=backend.get("dtype") == "float32",
        noise=remote.tolerance,
    )
    cosines = compared.cosines
    return Parity(
        schema_version=1,
        encoder=spec.name,
        texts_sha256=texts.sha256,
        local=dict(local.identity()["backend"]),
        remote=backend,
        served=dict(compared.there.facts),
        cosine_required=compared.required,
        cosine_min=round(float(cosines.min()), 9),
        worst=compared.names[int(cosines.argmin())],
        norm_error_max=round(float(compared.norm_errors.max()), 9),
        difference_max=round(float(np.abs(compared.there.rows - compared.here.rows).max()), 9),
        checks=[check(compared) for check in CHECKS],
        checked_on=today,
    )


def keep(store: Store, identity: JSON, found: Parity) -> Path:
    """Store the record and return its path; a failed one has another name and removes an earlier one that passed."""
    folder = _folder(store, identity)
    path, other = (folder / name for name in ((_PASSED, _FAILED) if found.passed else (_FAILED, _PASSED)))
    with disk_errors(path):
        # First: a kill in between leaves a cell "not checked", never one that names a parity of the past.
        other.unlink(missing_ok=True)
        write_atomic(path, json_bytes(found.model_dump()))
    return path


def parity_of(store: Store, identity: JSON) -> Parity | None:
    """The passed comparison of the encoder of this identity; None if none was made, or its file is damaged."""
    path = _folder(store, identity) / _PASSED
    if not path.exists():
        return None
    try:
        return checked(Parity, read_json(path), path)
    except InputError as error:
        _log.warning("%s The comparison counts as not made.", error)
        return None


def _texts(local: Encoder) -> Texts:
    return parity_texts(lambda some: local.token_counts(some, "document").tolist(), local.spec.max_tokens)


def _folder(store: Store, identity: JSON) -> Path:
    return store.root / "parity" / canonical.digest({"stage": "parity", "format": FORMAT, "of": identity})


def _embedded(encoder: Encoder, texts: Texts) -> ParityRows:
    documents, queries = _side(encoder, texts.documents, "document"), _side(encoder, texts.queries, "query")
    facts = _one_machine(encoder, [*documents[2], *queries[2]])
    return ParityRows(documents[0], queries[0], np.concatenate([documents[1], queries[1]]), facts)


def _side(
    encoder: Encoder, texts: Sequence[Text], side: PromptSide
) -> tuple[Matrix, NDArray[np.int64], list[Mapping[str, str]]]:
    """Rows, tokens (the backend's own count if it makes one), and what each answer said of where it ran."""
    work = TextSet.of([row.text for row in texts], side, "forward")
    assert len(work.texts) == len(texts), "the texts of a side are distinct"
    counts = token_counts(encoder, work).copy()
    missing = {batch.batch_id: (batch, places) for batch, places in planned(encoder, work, counts)}
    rows = np.empty((len(texts), encoder.spec.dim), dtype=np.float32)
    facts: list[Mapping[str, str]] = []
    trouble = "no answer came"
    for _ in range(1 + encoder.resubmissions):
        with closing(encoder.embed([batch for batch, _ in missing.values()])) as answers:
            for answer in answers:
                trouble = answer.error or trouble
                if answer.batch_id not in missing or answer.rows is None:
                    continue
                _, places = missing.pop(answer.batch_id)
                rows[places] = checked_rows(encoder, answer.rows, len(places))
                counts[places] = counts[places] if answer.n_tokens is None else answer.n_tokens
                facts.append(answer.facts)
        if not missing:
            return rows, counts, facts
    lost = [texts[place].name for _, places in missing.values() for place in places]
    raise BackendError(
        f"{encoder.spec.name}: {len(lost)} of {len(texts)} texts were not embedded ({trouble}), the first the {side} "
        f"{lost[0]!r}. Mend the backend and compare again."
    )


def _one_machine(encoder: Encoder, facts: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """What every answer said of where it ran; a BackendError if they differ."""
    for other in facts[1:]:
        if other != facts[0]:
            what = min(name for name in {*other, *facts[0]} if other.get(name) != facts[0].get(name))
            raise BackendError(
                f"{encoder.spec.name}: the answers of one comparison came from two kinds of machine ({what}: "
                f"{facts[0].get(what)!r} and {other.get(what)!r}). Ask for one kind and compare again."
            )
    return facts[0]
