"""Records of the statistics as results.json has them."""

from runner.base.records import Interval
from runner.base.schema import Model
from runner.eval_set.shapes.tests import Difference, MeasureResult, PairedTestResult
from runner.score.comparison import Comparison


def shaped(shape: type[Model], record: object) -> Model:
    """The record as the shape that has its fields, and so every record inside it."""
    return shape.model_validate(record, from_attributes=True)


def scores_of(comparison: Comparison, measures: tuple[str, ...]) -> dict[str, dict[str, MeasureResult]]:
    """Every cell's means by measure."""
    means = {measure: comparison.means(measure) for measure in measures}
    return {
        cell: {measure: shaped(MeasureResult, rows[place]) for measure, rows in means.items()}
        for place, cell in enumerate(comparison.runs)
    }


def differences_of(comparison: Comparison, measures: tuple[str, ...]) -> dict[str, dict[str, Difference]]:
    """Every cell's differences to the baseline by measure; zeros for the baseline itself."""
    found = {measure: comparison.differences(measure) for measure in measures}
    return {
        cell: {measure: shaped(Difference, rows[place]) for measure, rows in found.items()}
        for place, cell in enumerate(comparison.runs)
    }


def test_of(comparison: Comparison, cell: str) -> PairedTestResult:
    """A challenger's test, without what is adjusted over the tested family if the cell is outside of it."""
    test, adjusted = comparison.tests[cell], cell in comparison.registered
    return PairedTestResult(
        p=test.p,
        exact=test.exact,
        p_t=test.p_t,
        p_adjusted=test.p_adjusted if adjusted else None,
        p_skew=test.p_skew if adjusted else None,
        p_holm=test.p_holm if adjusted else None,
        interval=_ends(test.interval),
        simultaneous=_ends(test.simultaneous) if adjusted else None,
        cohens_d=test.cohens_d,
        sd=test.sd,
        left_out=_ends(test.left_out),
        influential=comparison.query_ids[test.influential],
    )


def _ends(interval: Interval) -> list[float]:
    return [interval.low, interval.high]
