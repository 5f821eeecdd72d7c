"""Records of the statistics in the shapes of results.json."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from runner.base.schema import Model
from runner.eval_set.shapes.paired import PairedTestResult
from runner.score.comparison import Comparison


def shaped(shape: type[Model], record: object) -> Model:
    """The record as the shape that has its fields, and so every record inside it."""
    return shape.model_validate(record, from_attributes=True)


def by_cell(
    cells: Iterable[str], found: Callable[[str], Sequence[Model]], measures: tuple[str, ...]
) -> dict[str, dict[str, Model]]:
    """What `found` says of all cells by each measure, in their order, as a row per cell."""
    rows = {measure: found(measure) for measure in measures}
    return {cell: {measure: records[place] for measure, records in rows.items()} for place, cell in enumerate(cells)}


def test_of(comparison: Comparison, cell: str) -> PairedTestResult:
    """A challenger's test, without what is adjusted over the tested family if the cell is outside of it."""
    test = asdict(comparison.tests[cell])
    del test["mean"]  # differences have it
    for name in ("interval", "simultaneous", "left_out"):
        test[name] = list(test[name].values())
    if cell not in comparison.registered:
        test |= dict.fromkeys(("p_adjusted", "simultaneous"))
    if (gain := comparison.gain_tests.get(cell)) is not None and gain.p_step != gain.p:
        test["p_step"] = gain.p_step
    test |= {"p_gain": gain and gain.p, "e_value": comparison.e_values.get(cell)}
    return PairedTestResult(**test | {"influential": comparison.query_ids[test["influential"]]})
