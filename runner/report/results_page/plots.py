"""Where everything that the results page draws stands; its templates only draw it."""

from collections.abc import Mapping

from runner.base.canonical import JSON
from runner.report.results_page.curves import recall_plot
from runner.report.results_page.drill_down import drill_down
from runner.report.results_page.forest import forest
from runner.report.results_page.heat_map import heat_map
from runner.report.results_page.leave_one_out import left_out
from runner.report.results_page.lengths import length_rows
from runner.report.results_page.null_strips import null_strips
from runner.report.results_page.pareto import cost_plot


def plots(results: Mapping[str, JSON], receipt: Mapping[str, JSON] | None) -> dict[str, JSON]:
    """The views of the page by name, from results and receipt as JSON whose texts are inert."""
    return {
        "forest": forest(results),
        "heat": heat_map(results),
        "left_out": left_out(results),
        "recall": recall_plot(results),
        "cost": cost_plot(results, receipt),
        "nulls": null_strips(results),
        "lengths": length_rows(results),
        "lists": drill_down(results),
    }
