import random
from pathlib import Path

import numpy as np
import pytest

from runner.base.errors import BackendError, InputError
from runner.base.store import PIECES, Store
from runner.embed import reranker
from runner.embed.reranker import STAGE, pair_scores, reranker_for
from runner.eval_set.catalog import RERANKERS
from tests.support.small_set import BILLS
from tests.support.tiny_reranker import tiny_folder, tiny_reranker

PAIRS = [(bill[2], "\n".join(other[: 1 + n % 6])) for n, bill in enumerate(BILLS[:5]) for other in BILLS]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_folder(tmp_path_factory.mktemp("reranker"))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reranker, "FORWARD_TOKENS", 256)


def transformers_alone(folder: Path, pairs: list[tuple[str, str]], limit: int) -> tuple[list[float], list[int]]:
    """Score and untruncated length of each pair by itself, without sentence-transformers."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    cut = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    scores, lengths = [], []
    for query, text in pairs:
        inputs = cut(query, text, truncation="longest_first", max_length=limit, return_tensors="pt")
        with torch.inference_mode():
            scores.append(float(model(**inputs).logits[0, 0]))
        lengths.append(len(cut(query, text).input_ids))
    return scores, lengths


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit"), [("ms-marco-minilm-l6", 512), ("ms-marco-minilm-l6", 40), ("bge-reranker-v2-m3", 40)]
)
def test_scores_are_those_of_transformers_pair_by_pair_cut_at_the_limit(tmp_path, folder, name, limit):
    place = folder if name == "ms-marco-minilm-l6" else tiny_folder(tmp_path / "model", name)
    found = pair_scores(Store(tmp_path), tiny_reranker(place, name, limit), PAIRS)
    scores, lengths = transformers_alone(place, PAIRS, limit)
    assert np.abs(found.scores - scores).max() < 1e-4
    assert np.ptp(scores) > 0.1
    assert found.n_tokens.tolist() == lengths
    assert found.n_lost.tolist() == [max(0, length - limit) for length in lengths]
    assert (max(lengths) > limit) == (limit == 40)


@pytest.mark.slow
def test_a_killed_run_goes_on_and_neither_order_nor_repeats_change_a_bit(tmp_path, folder, monkeypatch):
    model = tiny_reranker(folder)
    whole = pair_scores(Store(tmp_path / "whole"), model, PAIRS)
    score, asked = model.score, []

    def killed(pairs):
        asked.append(len(pairs))
        if len(asked) == 4:
            raise KeyboardInterrupt
        return score(pairs)

    store = Store(tmp_path / "killed")
    monkeypatch.setattr(model, "score", killed)
    with pytest.raises(KeyboardInterrupt):
        pair_scores(store, model, PAIRS)
    before = sum(asked[:3])
    pieces = sorted(store.root.glob(f"{STAGE}/*/{PIECES}/*.scores"))
    n_scores = [len(piece.read_bytes().partition(b"\n")[2]) // 8 for piece in pieces]
    assert sum(n_scores) == before
    damaged = pieces[0].read_bytes()
    pieces[0].write_bytes(damaged[: len(damaged) // 2])
    asked.clear()
    monkeypatch.setattr(model, "score", lambda pairs: (asked.append(len(pairs)), score(pairs))[1])
    mixed = PAIRS + PAIRS[:7]
    random.Random(3).shuffle(mixed)
    found = pair_scores(store, model, mixed)
    assert sum(asked) == len(PAIRS) - before + n_scores[0]
    known = dict(zip(PAIRS, whole.scores.tolist(), strict=True))
    assert found.scores.tolist() == [known[pair] for pair in mixed]
    assert (whole.seconds is None, found.seconds) == (False, None)
    asked.clear()
    assert pair_scores(store, model, PAIRS).scores.tolist() == whole.scores.tolist()
    assert asked == []


def test_a_model_that_gives_no_single_score_is_refused(tmp_path):
    model = tiny_reranker(tiny_folder(tmp_path / "two", n_outputs=2))
    with pytest.raises(BackendError, match="one output"):
        pair_scores(Store(tmp_path), model, PAIRS[:3])


def test_every_catalogued_reranker_is_pinned_and_an_unknown_one_names_the_nearest():
    for name, spec in RERANKERS.items():
        assert (spec.name, spec.dim, len(bytes.fromhex(spec.revision))) == (name, 1, 20)
    with pytest.raises(InputError, match="did you mean 'bge-reranker-v2-m3'"):
        reranker_for("bge-reranker")
