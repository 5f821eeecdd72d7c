"""The story of Mira, who never studies, with figures that the gate computes while it is told."""

from collections.abc import Sequence
from dataclasses import replace

from runner.tools.console import Signs
from runner.tools.grade.bench_file import Bench
from runner.tools.grade.grade import ALPHA, TAU, grade_bench
from runner.tools.grade.sample_bench import constant, oracle, popular, predicted, sample_bench, source_prior

METRIC = "ndcg@5"
_WIDTH = 37

_OPENING = """\
Mira never studies. She has noticed which answer is right most often and gives it to every question:
{right} of {n} right, and nothing known. A search engine can do the same: return what is popular, whatever
is asked, and have a score.

So the gate asks of a score whether systems that read no question would have had it too. Four such
systems, the nulls:
  A  right answers exchanged with one another           C  lists drawn at random
  B  right answers drawn evenly                         D  right answers drawn as often as they occur

{n} questions, {n_pool} bills to find, {metric}. {delta} is the score less the null's mean,
and {ok} means {delta} {at_least} {tau}, p {at_most} {alpha}.
"""
_THEO = """
Theo reads no question either, only the subject on the cover of the exam, and gives that subject's
favourites. Over all subjects at once he passes for an engine. Within the subjects, as strata:
"""
_END = """
`quickstart DIR` writes this bench. `grade` takes your system's in the same form; name the stratum of
every row, or Theo stays unseen."""


def mira_story(signs: Signs) -> str:
    """Four systems through the gate over the sample bench, two of them by stratum as well; no newline at the end."""
    bench, pool = sample_bench()
    theo = predicted(bench, pool, source_prior)
    pooled = {
        f"Mira, always {popular(bench.gold)[0]}": predicted(bench, pool, constant),
        f"an engine, first place in {_first_places(bench)} of {len(bench.gold)}": bench,
        "an oracle, always right": predicted(bench, pool, oracle),
        "Theo, the subject's favourites": theo,
    }
    within = {"Theo, within subjects": theo, "the engine, within subjects": bench}
    first = [_row(name, replace(system, strata=None), pool, signs) for name, system in pooled.items()]
    second = [_row(name, system, pool, signs) for name, system in within.items()]
    return "\n".join([_opening(bench, pool, signs), _header(signs), *first, _THEO, _header(signs), *second, _END])


def _opening(bench: Bench, pool: Sequence[str], signs: Signs) -> str:
    return _OPENING.format(
        right=bench.gold.count(popular(bench.gold)[0]),
        n=len(bench.gold),
        n_pool=len(pool),
        metric=METRIC,
        delta=signs.delta,
        ok=signs.ok,
        at_least=signs.at_least,
        tau=f"{TAU:.2f}",
        at_most=signs.at_most,
        alpha=f"{ALPHA:.2f}",
    )


def _header(signs: Signs) -> str:
    columns = (f"{signs.delta + null:<{len('+0.00 ' + signs.ok)}}" for null in "ABCD")
    return f"{'':<{_WIDTH}}score  {'  '.join(columns)}  gate"


def _row(name: str, bench: Bench, pool: Sequence[str], signs: Signs) -> str:
    """A system's score, its deltas with a mark each, and the verdict."""
    found = grade_bench(bench, METRIC, pool)
    columns = (
        f"{signs.signed(found['deltas'][null], 2)} {signs.of(found['verdicts'][null]):<{len(signs.ok)}}"
        for null in "ABCD"
    )
    return f"{name:<{_WIDTH}}{found['real_mean']:5.2f}  {'  '.join(columns)}  {found['verdict'].upper()}"


def _first_places(bench: Bench) -> int:
    return sum(items[0] == gold for items, gold in zip(bench.retrieved, bench.gold, strict=True))
