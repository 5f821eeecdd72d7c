"""Defects planted on purpose: the gates, the probe and the lock must let good systems pass and catch every one."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.base.errors import BackendError, NegativeVerdict
from runner.tools.doctor.parts import bm25, tiny_set, whole_bills

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from runner.base.records import PromptSide, Run
    from runner.embed.encoder import Encoder
    from runner.eval_set.shapes.gate import GateVerdict
    from runner.gate.cheaters import Exam, Lists

_DRAWS = 20
_MOST_PASSES = 4
"""Of _DRAWS random predictors; more than these pass a gate that holds at 5 % each once in 400 times."""

_PLACES_MOVED = 5
_GRADED: dict[str, Any] = {"draws": 400, "tau": 0.05, "alpha": 0.05, "seed": 2026}


def good_systems_pass() -> str:
    """Return by how much an oracle and the sample's engine pass the single-gold gate."""
    from runner.gate.cheaters import oracle

    verdicts = {"oracle": _graded(oracle), "engine": _graded(lambda exam: exam.engine)}
    for name, verdict in verdicts.items():
        if verdict["verdict"] != "pass":
            raise NegativeVerdict(f"the {name} does not pass: {'; '.join(verdict['reasons'])}")
    smallest = {name: min(verdict["deltas"].values()) for name, verdict in verdicts.items()}
    return ", ".join(f"{name} above every null by {delta:.2f} or more" for name, delta in smallest.items())


def cheater_fails(name: str) -> str:
    """Check how often what reads no query passes the single-gold gate: never may what has no luck."""
    from runner.gate.cheaters import CHEATERS

    has_luck = name in ("random", "marginal-matched")
    # Lists that are the same each time are drawn once; of chance, a few in twenty may pass at 5 %.
    draws, most = (_DRAWS, _MOST_PASSES) if has_luck else (1, 0)
    verdicts = [_graded(CHEATERS[name].lists, seed) for seed in range(draws)]
    passes = sum(verdict["verdict"] == "pass" for verdict in verdicts)
    if passes > most:
        raise NegativeVerdict(f"lists that read no query ({name}) passed the gate {passes} of {draws} times")
    return f"refused {draws - passes} of {draws} times; it scores {verdicts[0]['real_mean']:.2f}"


def bm25_passes() -> str:
    """Check that BM25 passes the graded gate over the twelve bills."""
    tiny = tiny_set()
    gate = _gate(bm25(list(tiny.queries.values())), tiny.qrels)
    if gate.verdict != "pass":
        raise NegativeVerdict(f"BM25 over twelve bills: {_verdicts(gate)}")
    return f"BM25 scores {gate.real:.2f} and passes {len(gate.nulls)} nulls"


def graded_controls_behave() -> str:
    """Check that the graded gate says of every run's controls what is expected of each."""
    from runner.gate.controls import controls
    from runner.gate.gate import Gate

    tiny = tiny_set()
    chunks, lengths = _sizes()
    behaviour = controls(Gate.of(list(tiny.queries), tiny.qrels, tiny.strata, lengths, **_GRADED), chunks)
    wrong = [
        f"{c.name} passes {c.passes} of {c.draws} times, expected to {c.expected}" for c in behaviour if not c.behaves
    ]
    if wrong:
        raise NegativeVerdict("; ".join(wrong))
    return f"{', '.join(control.name for control in behaviour)}: each as expected"


def deaf_bm25_fails() -> str:
    """Check that the graded gate refuses a BM25 that is given one and the same query each time."""
    tiny = tiny_set()
    first = next(iter(tiny.queries.values()))
    return _refused(_gate(bm25([first] * len(tiny.queries)), tiny.qrels), "a BM25 that ignores its query")


def permuted_labels_fail() -> str:
    """Check that the graded gate refuses BM25 if each query has the labels of another one."""
    tiny = tiny_set()
    query_ids = list(tiny.qrels)
    # By more places than a stratum has bills, so that nobody keeps a neighbour's labels.
    moved = query_ids[_PLACES_MOVED:] + query_ids[:_PLACES_MOVED]
    qrels = {query_id: tiny.qrels[other] for query_id, other in zip(query_ids, moved, strict=True)}
    return _refused(_gate(bm25(list(tiny.queries.values())), qrels), "labels that were permuted")


def constant_encoder_is_refused() -> str:
    """Check that the probe refuses an encoder that returns one vector for every text."""
    from runner.embed.probe import probe

    try:
        probe(_constant_encoder())
    except BackendError as error:
        return f"refused: {str(error).partition('. ')[0]}"
    raise NegativeVerdict("the probe let an encoder pass that returns one vector for every text")


def flipped_byte_is_found() -> str:
    """Check that a lock over a folder holds, and no longer does once one byte of one file changed."""
    from runner.eval_set.door import folder_differences, lock_folder

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "labels.jsonl").write_bytes(b'{"grade": 2}\n')
        (folder / "runs.tsv").write_bytes(b"q01\t1\n")
        # It must hold first: one that never holds would find any byte.
        lock = lock_folder(folder)
        if folder_differences(folder, lock):
            raise NegativeVerdict("a folder that nobody touched does not match its lock")
        (folder / "labels.jsonl").write_bytes(b'{"grade": 3}\n')
        if not folder_differences(folder, lock):
            raise NegativeVerdict("a flipped byte of a locked file was not noticed")
    return "the untouched folder matches, the one with a flipped byte does not"


def _constant_encoder() -> "Encoder":
    """Return an encoder as the probe takes it, broken: one unit vector, whatever the text."""
    import numpy as np

    from runner.embed.encoder import InProcessEncoder
    from runner.eval_set.catalog import EncoderSpec

    class ConstantEncoder(InProcessEncoder):
        spec = EncoderSpec(name="constant-vector", model="planted/constant-vector", dim=8, max_tokens=32)

        def identity(self) -> dict[str, Any]:
            return {"encoder": self.spec.name, "backend": {"name": "planted"}}

        def token_counts(self, texts: Sequence[str], side: "PromptSide") -> "NDArray[np.int64]":
            return np.array([len(text.split()) for text in texts], np.int64)

        def encode(self, texts: Sequence[str], side: "PromptSide") -> "NDArray[np.float32]":
            return np.eye(1, self.spec.dim, dtype=np.float32).repeat(len(texts), axis=0)

    return ConstantEncoder()


def _graded(lists: "Callable[[Exam], Lists]", seed: int = 2026) -> dict[str, Any]:
    """Return the single-gold gate's verdict on a predictor over the sample bench, by strata."""
    from runner.tools.grade.grade import grade_bench
    from runner.tools.grade.sample_bench import predicted, sample_bench

    bench, pool = sample_bench()
    return grade_bench(predicted(bench, pool, lists, seed), "ndcg@5", pool, n_trials=200, seed=seed)


def _gate(run: "Run", qrels: Mapping[str, Mapping[str, int]]) -> "GateVerdict":
    from runner.gate.gate import Gate

    tiny = tiny_set()
    chunks, lengths = _sizes()
    return Gate.of(list(tiny.queries), qrels, tiny.strata, lengths, **_GRADED).judge(run, chunks)


def _sizes() -> tuple[dict[str, int], dict[str, int]]:
    """Return chunks and characters of each bill."""
    chunks = {chunk.doc_id: 1 for chunk in whole_bills()}
    return chunks, {document.doc_id: len(document.text) for document in tiny_set().documents}


def _refused(gate: "GateVerdict", defect: str) -> str:
    if gate.verdict != "fail":
        raise NegativeVerdict(f"{defect}: the gate says {gate.verdict!r} ({_verdicts(gate)})")
    return f"refused at {gate.real:.2f}: {_verdicts(gate)}"


def _verdicts(gate: "GateVerdict") -> str:
    return ", ".join(f"{null.name} {null.verdict}" for null in gate.nulls)
