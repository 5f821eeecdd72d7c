"""What a decision cites of other sources' pooled results."""

import pytest

from runner.base.canonical import file_sha256, json_bytes
from runner.base.errors import InputError
from runner.decide.decide import RECOMMENDED, Choice, decide, decision_sentence, remade
from runner.decide.pooled_gains import read_pooled
from tests.support.example_results import BASELINE, BETTER, HYBRID, SHA, SPARSE, results, row

STRUCTURAL = {"effects": ["structural chunker"], "mean": 0.031, "sd": 0.02, "low": -0.008, "high": 0.07}
OTHERS = {"effects": ["bm25", "whole documents"], "mean": -0.1, "sd": 0.02, "low": -0.14, "high": -0.06}
CHANCES = {"p_above_0": 0.94, "p_above_bar": 0.7}


@pytest.fixture(name="pooled")
def _pooled(tmp_path):
    """Writes what `pooled --output` writes, with these fields otherwise, and reads it."""

    def write(**fields):
        predicted = [known | CHANCES for known in (STRUCTURAL, OTHERS)]
        report = {"schema_version": 2, "kind": "production", "baseline": BASELINE, "predicted": predicted, "tau": 0.1}
        path = tmp_path / "pooled.json"
        path.write_bytes(json_bytes(report | fields))
        return read_pooled(path)

    return write


def decided(cell, pooled, *rows, kind="production"):
    made = results(*rows, row(BASELINE), kind=kind)
    return made, decide(made, SHA, Choice(cell, "because", "me", pooled), today="2026-01-31")


def test_a_decision_cites_the_figures_of_cells_like_the_chosen_one(pooled):
    file = pooled()
    made, decision = decided(BETTER, file, row(SPARSE, 0.1), row(BETTER, 0.03))
    assert decision.pooled.model_dump() == {
        "sha256": file_sha256(file.path),
        "cell": BETTER,
        "gain": 0.031,
        "low": -0.008,
        "high": 0.07,
        "p_above_0": 0.94,
    }
    assert "94 %" in decision_sentence(decision)
    assert remade(decision, made).pooled == decision.pooled
    assert decided(SPARSE, file, row(SPARSE, 0.1), row(BETTER, 0.03))[1].pooled.gain == -0.1
    assert "pooled" not in decided(BETTER, None, row(BETTER, 0.03))[1].model_dump()


def test_a_decision_for_the_baseline_cites_the_best_challenger(pooled):
    for cell in (BASELINE, RECOMMENDED):
        decision = decided(cell, pooled(), row(SPARSE, -0.1), row(BETTER, 0.03, believed=0.0))[1]
        assert (decision.chosen.cell, decision.pooled.cell) == (BASELINE, BETTER)


@pytest.mark.parametrize(
    ("fields", "cell", "kind", "said"),
    [
        ({"kind": "rehearsal"}, BETTER, "production", "kind is rehearsal, that of this version production"),
        ({}, BETTER, "rehearsal", "kind is production, that of this version rehearsal"),
        ({"baseline": SPARSE}, BETTER, "production", f"baseline is {SPARSE}, that of this version {BASELINE}"),
        ({}, HYBRID, "production", f"no source there has a cell like '{HYBRID}', only structural chunker; bm25"),
    ],
)
def test_what_cannot_be_cited_is_refused_with_both_sides_named(pooled, fields, cell, kind, said):
    with pytest.raises(InputError) as caught:
        decided(cell, pooled(**fields), row(cell, 0.1), kind=kind)
    assert said in str(caught.value)


@pytest.mark.parametrize("fields", [{"schema_version": 1}, {"predicted": None}, {"kind": "exploration"}])
def test_a_file_that_pooled_did_not_write_is_refused(pooled, fields):
    with pytest.raises(InputError, match=r"pooled\.json"):
        pooled(**fields)
