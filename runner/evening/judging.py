"""The pool's way to labels: batches for people or agents, or the plan's language models at once."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from runner.base.errors import InputError
from runner.base.progress import say
from runner.base.records import Run
from runner.eval_set.batches import Pair
from runner.eval_set.labels import closed, version_labels
from runner.evening.session import Session
from runner.evening.stops import judging_notes
from runner.judge.models.run_judges import judge_again, judge_missing
from runner.judge.prep_labels import export_missing, judging_stop
from runner.judge.second_reading import second_reading_stop, unread_twice
from runner.retrieve.pool import unjudged
from runner.score.looks import Look


def need_labels(
    session: Session,
    pooled: Sequence[Pair],
    runs: Mapping[str, Run],
    provisional: Callable[[], Path],
    look: Look | None = None,
    *,
    ask: bool = True,
) -> None:
    """Have the whole pool judged, or raise InputNeeded with the batches that wait for a judge.

    `provisional` writes a page of what is judged so far. The pool is that of `look` if looks are planned; without `ask`
    no model is asked for it in this run. InputError if pairs are missing and labels are final.
    """
    version, plan, final = session.version, session.plan, closed(session.version)
    if missing := unjudged(pooled, version_labels(version)):
        if final:
            raise InputError(f"{len(missing)} of {len(pooled)} pairs of {version.name} are not judged. {final}")
        documents = {document.doc_id: document for document in session.documents}
        batches = export_missing(version, missing, [*runs.values(), session.runs.lexical_windows()], documents)
        if session.judge is None or not ask:
            due = list(next(iter(runs.values())).hits)[look.before if look else 0 :]
            if len(missing) < sum(query_id in due for query_id, _ in pooled):
                say(f"a provisional page, with {len(missing)} pairs unjudged: {provisional()}")
            stop = judging_stop(version, len(pooled), missing, batches, session.again)
            stop.notes = judging_notes(version, look)
            raise stop
        judge_missing(version, plan, set(missing), session.judge)
    if final:
        return
    if session.judge is not None:
        judge_again(version, plan, session.judge)
    elif waiting := unread_twice(version, plan):
        raise second_reading_stop(version, waiting, session.again)
