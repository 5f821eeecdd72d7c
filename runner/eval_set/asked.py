"""What is asked of retrieval: every wording of every topic. Runs are keyed by its ids, grades by those of topics."""

from collections.abc import Iterable
from typing import NamedTuple

from runner.eval_set.shapes.queries import WORDINGS, QueryRow, Wording


class AskedWording(NamedTuple):
    """One wording of a topic; its id is the topic's where there is no other, else q07.plain and q07.paraphrased."""

    id: str
    topic: str
    wording: Wording
    text: str


def asked(queries: Iterable[QueryRow]) -> list[AskedWording]:
    """Return the wordings of all topics, in their order, each topic's beside one another."""
    return [
        AskedWording(f"{query.id}.{wording}" if wording else query.id, query.id, wording, text)
        for query in queries
        for wording, text in query.wordings.items()
    ]


def asked_ids(queries: Iterable[QueryRow]) -> list[str]:
    """Return the ids of what is asked."""
    return [one.id for one in asked(queries)]


def topic_of(asked_id: str) -> str:
    """Return the topic of what was asked: no topic's own id ends as those of wordings do.

    >>> topic_of("q07.plain"), topic_of("q07")
    ('q07', 'q07')
    """
    topic, _, wording = asked_id.rpartition(".")
    return topic if topic and wording in WORDINGS else asked_id
