"""An evening over topics in two wordings, weighed by a mix, from queries.yaml to page and terminal."""

import pytest
import yaml

from runner.base.errors import PlanError
from runner.eval_set.asked import asked
from runner.eval_set.labels import version_labels
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.queries import LITERAL_KINDS
from runner.eval_set.version import load_lists, load_queries, load_results
from runner.report.summary import run_summary
from runner.score.slices import slices
from tests.support.evening_process import prepared, run
from tests.support.small_set import QUERIES, make_version, query_rows, write_plans

MIX = {"plain": 0.5, "paraphrased": 0.2, "citation": 0.3}


@pytest.fixture(scope="module", name="folder")
def _folder(tmp_path_factory):
    """A decided evening: every fifth query is a citation, the others have two wordings."""
    folder = tmp_path_factory.mktemp("wordings")
    version = prepared(folder)
    rows = query_rows()
    for place, row in enumerate(rows):
        row["kind"] = "topic" if place % 5 else "citation"
        if row["kind"] not in LITERAL_KINDS:
            row |= {"plain": row.pop("text"), "paraphrased": " ".join(QUERIES[place][1].split()[::2])}
    version.queries_path.write_text(yaml.safe_dump({"schema_version": 1, "queries": rows}, sort_keys=False))
    write_plans(version)
    path = version.plan_path(rehearsal=False)
    path.write_text(f"{path.read_text()}mix: {MIX}\n")
    run(folder)
    return folder


def test_an_evening_asks_every_wording_judges_topics_and_scores_both(folder):
    version = make_version(folder)
    results, queries = load_results(version), load_queries(version.queries_path)
    ids = [one.id for one in asked(queries)]
    assert len(ids) == 45
    # Asked and listed by wording, judged and scored by topic.
    assert list(read_run(version.run_path(results.cells[0].cell), "", ids).hits) == ids
    assert [query.id for query in load_lists(version).queries] == ids
    assert {label.query_id for label in version_labels(version)} <= {query.id for query in queries}
    for row in results.cells:
        assert {measure: len(units) for measure, units in row.by_wording.items()} == {"ndcg@10": 45, "recall@10": 45}
        assert {len(scores.per_query) for scores in row.scores.values()} == {25}
    left = [weight == 0 for weight in results.weights]
    assert left == [query.id in results.unanswered for query in queries]
    # Of what counts: a topic .7 / 20, a citation .3 / 5.
    heaviest = {"topic": 0, "citation": 0}
    for query, weight in zip(queries, results.weights, strict=True):
        heaviest[query.kind] = max(heaviest[query.kind], weight)
    assert heaviest["topic"] * 12 == heaviest["citation"] * 7
    assert {turn.what for turn in results.turnings} <= {"citations", "plain wordings"}
    parts = {(part.by, part.name): part for part in slices(results)}
    plain, other = parts["wording", "plain"], parts["wording", "paraphrased"]
    assert plain.queries == other.queries > 0
    assert plain.cells != other.cells


def test_page_and_terminal_say_what_counts(folder):
    version = make_version(folder)
    results, page = load_results(version), (version.folder / "results.html").read_text()
    for text in (page, " ".join(run_summary(results).split())):
        assert f"{results.effective:.1f} that weigh alike" in text
        assert all(query_id in text for query_id in results.unanswered[:9])
    for one in asked(results.queries):
        assert f'id="{one.id}"' in page
        assert f'id="{one.topic}"' in page


def test_a_mix_that_is_none_of_the_queries_is_said_by_whatever_reads_the_plan(version):
    path = version.plan_path(rehearsal=False)
    path.write_text(f"{path.read_text()}mix: {{plain: 0.5, paraphrased: 0.5}}\n")
    with pytest.raises(PlanError, match="the query q01 is of the class"):
        version.plan()
