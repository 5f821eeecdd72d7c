"""Every cell's scores beside the baseline's, query by query, and the statistics over all cells at once."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from runner.base.errors import IntegrityError
from runner.base.records import SCORE_UNIT, Interval, Ints, Qrels, Run, Scores
from runner.eval_set.asked import AskedWording, asked, asked_ids
from runner.eval_set.kinds import near_copies
from runner.eval_set.labels import version_labels
from runner.eval_set.mix import Mix, Weighing, natural, stated, weigh
from runner.eval_set.runs import read_run
from runner.eval_set.shapes.cell import CellFile
from runner.eval_set.shapes.paired import (
    Difference,
    MeasureResult,
    OverIncumbent,
    PairedTest,
)
from runner.eval_set.shapes.plan import Bootstrap, Normal, ScoredPlan
from runner.eval_set.shapes.queries import WORDINGS, QueryRow
from runner.eval_set.version import Version, load_cell_file, load_corpus, load_queries
from runner.score.bootstrap import mean_intervals, score_matrix
from runner.score.expected_gain import expected_gain
from runner.score.false_alarm import false_alarm
from runner.score.flips import Weights, counted
from runner.score.gain_test import GainTest, effective_number, gain_tests, most_lost
from runner.score.recall_bound import recall_bounds
from runner.score.score import COMPARED, MEASURES, qrels, score
from runner.score.sign_flip import paired_tests

HIGHEST_GRADE = 3
"""The judges' best grade."""


@dataclass(frozen=True)
class Comparison:
    """The runs of a version and all that judges them; `registered` cells form the tested family.

    `facts` are the cells' own files; `document_lengths` are the characters of every document of the corpus.
    `published` qrels are taken as they are: what they do not judge keeps no cell from anything.
    """

    plan: ScoredPlan
    queries: Sequence[QueryRow]
    runs: Mapping[str, Run]
    qrels: Qrels
    facts: Mapping[str, CellFile] = field(default_factory=dict)
    registered: frozenset[str] = frozenset()
    document_lengths: Mapping[str, int] = field(default_factory=dict)
    published: bool = False

    @cached_property
    def query_ids(self) -> list[str]:
        """The topics in the order of queries.yaml, which is that of every per-query list."""
        return [query.id for query in self.queries]

    @cached_property
    def asked(self) -> list[AskedWording]:
        """What was asked, which the runs answer: every wording of every topic."""
        return asked(self.queries)

    @cached_property
    def grades_of_asked(self) -> Qrels:
        """The grades of each topic under the id of each of its wordings."""
        return {one.id: self.qrels.get(one.topic, {}) for one in self.asked}

    @cached_property
    def unanswered(self) -> list[str]:
        """The topics without a relevant document, which count in no mean; of published qrels none, as for trec_eval."""
        if self.published:
            return []
        relevant = {topic: max(grades.values(), default=0) for topic, grades in self.qrels.items()}
        return [query_id for query_id in self.query_ids if relevant.get(query_id, 0) < self.plan.relevant_grade]

    @cached_property
    def mix(self) -> Mix:
        """The share of all asking that each class of queries stands for."""
        return stated(self.plan.mix) or natural(self.queries)

    @cached_property
    def weighing(self) -> Weighing:
        """What each topic counts, 0 if no document answers it, and each wording of one.

        If no topic has an answer, all count: else nothing would be left to score.
        """
        weighing = weigh(self.queries, self.mix)
        if len(self.unanswered) in (0, len(self.queries)):
            return weighing
        left = set(self.unanswered)
        ids = zip(self.query_ids, weighing.topics, strict=True)
        return weighing._replace(topics=[0 if query_id in left else weight for query_id, weight in ids])

    @cached_property
    def counted(self) -> list[int]:
        """The places of the topics that count."""
        return [place for place, weight in enumerate(self.weighing.topics) if weight]

    @cached_property
    def weights(self) -> list[int]:
        """What each of those counts, which is that of every column of `paired`."""
        return [weight for weight in self.weighing.topics if weight]

    @cached_property
    def asked_weights(self) -> dict[str, int]:
        """What each wording asked counts, but those of topics that do not."""
        topics = dict(zip(self.query_ids, self.weighing.topics, strict=True))
        wordings = self.weighing.wordings
        # Both wordings together count as much as the one of another topic.
        both = sum(weight for wording, weight in wordings.items() if wording) if len(self.asked) > len(topics) else 1
        shares = [topics[one.topic] * (wordings[one.wording] if one.wording else both) for one in self.asked]
        common = math.gcd(*shares)
        return {one.id: share // common for one, share in zip(self.asked, shares, strict=True) if share}

    @cached_property
    def effective(self) -> float:
        """How many topics of equal weight tell as much as those that count."""
        return effective_number(self.weights)

    @cached_property
    def strata(self) -> dict[str, str]:
        """Each query's stratum."""
        return {query.id: query.stratum for query in self.queries}

    @cached_property
    def wording_scores(self) -> dict[str, Scores]:
        """Every cell's scores of everything that was asked."""
        ids, grade = [one.id for one in self.asked], self.plan.relevant_grade
        return {cell: score(run, ids, self.grades_of_asked, grade) for cell, run in self.runs.items()}

    @cached_property
    def scores(self) -> dict[str, Scores]:
        """Every cell's scores by topic."""
        return {cell: self.by_topic(scores) for cell, scores in self.wording_scores.items()}

    def by_wording(self, cell: str) -> dict[str, list[int]]:
        """Return nDCG@10 and Recall@10 of everything that was asked; empty if nothing was asked in two wordings."""
        if len(self.asked) == len(self.queries):
            return {}
        values = self.wording_scores[cell].values
        return {measure: list(values[measure]) for measure in ("ndcg@10", "recall@10")}

    def by_topic(self, scores: Scores) -> Scores:
        """Return scores of what was asked as those of topics."""
        if len(self.asked) == len(self.queries):
            return scores
        rows = self._means_of_topics(np.array([*scores.values.values()], np.int64), self.weighing.wordings).tolist()
        values = {measure: tuple(row) for measure, row in zip(scores.values, rows, strict=True)}
        return Scores(scores.cell, tuple(self.query_ids), values)

    def of_topics(self, cells: Sequence[str], measure: str, wordings: Mapping[str, int]) -> Ints:
        """Return the scores of some cells by topic (cells, topics), under other weights of the wordings."""
        rows = np.array([self.wording_scores[cell].values[measure] for cell in cells], np.int64)
        return self._means_of_topics(rows, wordings)

    def _means_of_topics(self, values: Ints, wordings: Mapping[str, int]) -> Ints:
        """Return the weighted means over the wordings of each topic, to the nearest unit, halves up."""
        own = np.array([wordings[one.wording] for one in self.asked])
        # A topic's wordings stand beside one another.
        starts = [place for place, one in enumerate(self.asked) if one.wording != WORDINGS[1]]
        size = np.add.reduceat(own, starts)
        means: Ints = (2 * np.add.reduceat(values * own, starts, axis=1) + size) // (2 * size)
        return means

    @cached_property
    def highest_grade(self) -> int:
        """What a perfect document is graded: published qrels say it themselves."""
        if not self.published:
            return HIGHEST_GRADE
        return max((grade for grades in self.qrels.values() for grade in grades.values()), default=HIGHEST_GRADE)

    @cached_property
    def copies(self) -> dict[str, str]:
        """The near-copies among the cells, each with the cell that it copies."""
        return {cell: of for cell, of in near_copies(self.runs.keys()).items() if cell != self.plan.baseline}

    @cached_property
    def same_lists(self) -> dict[str, str]:
        """The cells that find what another finds, in its order, for everything that is asked; each with that other one.

        The baseline stands for others, then the incumbent, what the plan names first, and its order.
        """
        plan, stands, same = self.plan, dict[tuple[tuple[str, ...], ...], str](), {}
        leading = (plan.baseline, plan.incumbent, *plan.first)
        order = sorted(
            (cell for cell in self.runs if cell not in self.copies),
            key=lambda cell: (leading.index(cell) if cell in leading else len(leading), cell not in self.registered),
        )
        for cell in order:
            lists = tuple(tuple(self.runs[cell].ranks[one.id]) for one in self.asked)
            if (of := stands.setdefault(lists, cell)) != cell:
                same[cell] = of
        return same

    @property
    def challengers(self) -> list[str]:
        """The cells beside the baseline that may gain: near-copies are asked what they lose, equal lists are one."""
        left = {self.plan.baseline, *self.copies, *self.same_lists}
        return [cell for cell in self.runs if cell not in left]

    @property
    def family(self) -> list[str]:
        """The challengers that were preregistered, whose gains are tested at once."""
        return [cell for cell in self.challengers if cell in self.registered]

    @cached_property
    def losses(self) -> dict[str, float]:
        """What each near-copy loses at most against the cell that it copies."""
        bounds = {}
        for cell, of in self.copies.items():
            whole, copied = (self.scores[name].values["ndcg@10"] for name in (of, cell))
            lost = [kept - left for kept, left in zip(whole, copied, strict=True)]
            lost = [lost[place] for place in self.counted]
            bounds[cell] = most_lost(lost, self.plan.significance.alpha, self.weights)
        return bounds

    def matrix(self, cells: Sequence[str], measure: str) -> Ints:
        """Return the scores of some cells, (cells, topics that count) in units of 1e-9."""
        return score_matrix([self.scores[cell] for cell in cells], measure)[:, self.counted]

    def paired(self, cells: Sequence[str], measure: str) -> Ints:
        """Return cell minus baseline, (cells, topics that count) in units of 1e-9."""
        values = self.matrix([self.plan.baseline, *cells], measure)
        differences: Ints = values[1:] - values[0]
        return differences

    def mean(self, values: Ints) -> float:
        """Return the weighted mean of a row of `matrix` or `paired`."""
        return mean(values, self.weights)

    @cached_property
    def tests(self) -> dict[str, PairedTest]:
        """Every cell's test, adjusted over the tested family; of any other what is of that cell alone.

        A cell with the lists of another challenger has the intervals of that one.
        """
        family, baseline = self.family, self.plan.baseline
        same = {cell: of for cell, of in self.same_lists.items() if of != baseline}
        alone = [cell for cell in self.runs if cell not in (*family, *same, baseline)]
        tests = self._two_sided(family) if family else {}
        for cell, gain in self.gain_tests.items():
            tests[cell] = tests[cell].model_copy(update={"p_gain": gain.p, "bar": gain.bar})
        for cell in alone:
            tests[cell] = self._two_sided([cell])[cell].model_copy(update={"p_adjusted": None, "simultaneous": None})
        for cell, of in same.items():
            tests[cell] = tests[of].model_copy(update={"p_gain": None, "bar": None})
        return tests

    def _two_sided(self, cells: Sequence[str]) -> dict[str, PairedTest]:
        settings, differences = self.plan.significance, self.paired(cells, "ndcg@10")
        tests = paired_tests(
            differences, draws=settings.draws, alpha=settings.alpha, seed=settings.seed, weights=self.weights
        )
        return dict(zip(cells, tests, strict=True))

    @cached_property
    def gain_tests(self) -> dict[str, GainTest]:
        """The test of every preregistered challenger's gain, those that the plan names first before the others."""
        family = self.family
        first = [cell for cell in family if cell in self.plan.first]
        cells = first + [cell for cell in family if cell not in first]
        if not cells:
            return {}
        tests = gain_tests(self.paired(cells, "ndcg@10"), len(first), self.plan.significance.alpha, self.weights)
        return dict(zip(cells, tests, strict=True))

    @cached_property
    def recall_bounds(self) -> dict[str, list[float]]:
        """How far every other cell's Recall@10 may have fallen."""
        cells = [cell for cell in self.runs if cell != self.plan.baseline]
        if not cells:
            return {}
        alpha = self.plan.significance.alpha
        bounds = recall_bounds(self.paired(cells, "recall@10"), alpha=alpha, weights=self.weights)
        return dict(zip(cells, bounds, strict=True))

    @cached_property
    def expected_gains(self) -> dict[str, Normal]:
        """What is believed of each challenger's true gain.

        Empty if the judgments are published, from which nothing is chosen, and for a single query.
        """
        if self.published or len(self.counted) < 2:
            return {}
        return {
            cell: expected_gain(cell, self.paired([cell], "ndcg@10")[0], self.plan, self.weights)
            for cell in self.challengers
        }

    @cached_property
    def switch_gains(self) -> dict[str, Normal]:
        """What is believed of each challenger's gain over the cell in place, the incumbent left out if it is that."""
        place = self.plan.incumbent
        if not place or not self.expected_gains:
            return self.expected_gains
        cells = [cell for cell in self.challengers if cell != place]
        values = self.matrix([place, *cells], "ndcg@10")
        return {
            cell: expected_gain(cell, row, self.plan, self.weights, over=place)
            for cell, row in zip(cells, values[1:] - values[0], strict=True)
        }

    @cached_property
    def over_incumbent(self) -> dict[str, OverIncumbent]:
        """Every other preregistered challenger against the incumbent, by the test against the baseline; else empty."""
        if not self.plan.incumbent:
            return {}
        # The same comparison with the incumbent in the baseline's place, and the baseline outside of the family.
        plan = self.plan.model_copy(update={"baseline": self.plan.incumbent})
        other = replace(self, plan=plan, registered=self.registered - {self.plan.baseline, self.plan.incumbent})
        cells = other.family
        moved = {
            measure: summarised(other.paired(cells, measure), plan.bootstrap, other.weights)
            for measure in ("ndcg@10", "recall@10")
        }
        return {
            cell: OverIncumbent(
                differences={measure: rows[place] for measure, rows in moved.items()},
                test=other.tests[cell],
                expected=self.switch_gains.get(cell),
            )
            for place, cell in enumerate(cells)
        }

    def document_chunks(self, cell: str) -> dict[str, int]:
        """Return how many chunks the cell cut each document into; IntegrityError if its file counts another corpus."""
        counts = self.facts[cell].chunks_per_document
        if len(counts) != len(self.document_lengths):
            raise IntegrityError(
                f"The file of {cell} counts the chunks of {len(counts)} documents, and corpus.jsonl has "
                f"{len(self.document_lengths)}. Restore both from git or a backup, or run the cell again."
            )
        return dict(zip(self.document_lengths, counts, strict=True))

    def false_alarm(self) -> float | None:
        """Return how often criterion 5 would flag some cell if all equalled the baseline; None if it stands alone."""
        if not self.challengers:
            return None
        rule, settings = self.plan.rule, self.plan.significance
        return false_alarm(
            self.paired(self.challengers, "ndcg@10"),
            self.paired(self.challengers, "recall@10"),
            min_gain=rule.min_gain,
            max_recall_loss=rule.max_recall_loss,
            draws=settings.draws,
            seed=settings.seed,
            weights=self.weights,
        )

    @cached_property
    def means(self) -> dict[str, dict[str, MeasureResult]]:
        """Every cell's mean of every measure with its bootstrap interval."""
        by_cell: dict[str, dict[str, MeasureResult]] = {cell: {} for cell in self.runs}
        for measure in MEASURES:
            values = self.matrix([*self.runs], measure)
            for cell, row in zip(self.runs, measured(values, self.plan.bootstrap, self.weights), strict=True):
                # The mean is of those that count, and the list has all.
                every = list(self.scores[cell].values[measure])
                by_cell[cell][measure] = row.model_copy(update={"per_query": every})
        return by_cell

    @cached_property
    def differences(self) -> dict[str, dict[str, Difference]]:
        """Every cell less the baseline in the measures that are compared; zeros for the baseline itself."""
        by_cell: dict[str, dict[str, Difference]] = {cell: {} for cell in self.runs}
        for measure in COMPARED:
            differences = self.paired([*self.runs], measure)
            for cell, row in zip(self.runs, summarised(differences, self.plan.bootstrap, self.weights), strict=True):
                by_cell[cell][measure] = row
        return by_cell


def load_runs(version: Version, plan: ScoredPlan) -> dict[str, Run]:
    """Return the recorded runs of the plan's cells, in its order."""
    query_ids = asked_ids(load_queries(version.queries_path))
    return {cell: read_run(version.run_path(cell), cell, query_ids) for cell in plan.cells}


def load_comparison(
    version: Version,
    plan: ScoredPlan,
    registered: frozenset[str],
    published: Qrels | None = None,
    runs: Mapping[str, Run] | None = None,
) -> Comparison:
    """Return the recorded runs of the plan's cells beside the version's labels, or beside `published` qrels.

    `runs` are what `load_runs` gives, read here if they are not given.
    """
    return Comparison(
        plan=plan,
        queries=load_queries(version.queries_path),
        runs=load_runs(version, plan) if runs is None else runs,
        qrels=qrels(version_labels(version)) if published is None else published,
        facts={cell: load_cell_file(version.cell_path(cell)) for cell in plan.cells},
        registered=registered,
        document_lengths={row.doc_id: row.n_chars for row in load_corpus(version.corpus_path)[1]},
        published=published is not None,
    )


def mean(values: Ints, weights: Weights = None) -> float:
    """Return the mean of values in units of 1e-9."""
    own = counted(weights, len(values))
    return int((values * own).sum()) / (int(own.sum()) * SCORE_UNIT)


def wins_ties_losses(differences: Ints) -> tuple[int, int, int]:
    """Count them over a row of differences, one per query."""
    return int((differences > 0).sum()), int((differences == 0).sum()), int((differences < 0).sum())


def less(after: Mapping[str, int], before: Mapping[str, int], queries: Iterable[str]) -> Ints:
    """Return one result's scores less another's, query by query; the two may have them in different orders."""
    return np.array([after[query] - before[query] for query in queries], np.int64)


def summarised(differences: Ints, bootstrap: Bootstrap, weights: Weights = None) -> list[Difference]:
    """Return of each row of differences by query its mean, bootstrap interval, wins, ties and losses."""
    rows = []
    for row, interval in zip(differences, planned_intervals(differences, bootstrap, weights), strict=True):
        wins, ties, losses = wins_ties_losses(row)
        average = mean(row, weights)
        rows.append(Difference(mean=average, low=interval.low, high=interval.high, wins=wins, ties=ties, losses=losses))
    return rows


def measured(values: Ints, bootstrap: Bootstrap, weights: Weights = None) -> list[MeasureResult]:
    """Return of each row of scores by query its mean and bootstrap interval."""
    return [
        MeasureResult(mean=mean(row, weights), low=ends.low, high=ends.high, per_query=row.tolist())
        for row, ends in zip(values, planned_intervals(values, bootstrap, weights), strict=True)
    ]


def planned_intervals(values: Ints, bootstrap: Bootstrap, weights: Weights = None) -> tuple[Interval, ...]:
    """Return the bootstrap interval of each row's mean, drawn as the plan says."""
    drawn = {"seed": bootstrap.seed, "resamples": bootstrap.resamples}
    return mean_intervals(values, **drawn, level=bootstrap.confidence, weights=weights)
