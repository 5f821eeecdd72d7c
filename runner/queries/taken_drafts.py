"""drafted.yaml: a row's next answer changes its draft, and never doubles it.

A file beside it remembers every draft, so that one which a person deleted or edited stays as they left it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runner.base.canonical import jsonl_bytes, read_jsonl, write_atomic
from runner.base.schema import FrozenModel, Sha256, checked
from runner.eval_set.shapes.queries import QueryRow
from runner.queries.draft_answers import Draft
from runner.queries.draft_asks import DraftRow
from runner.queries.kinds import WANTED_GENERATED
from runner.queries.query_file import append_queries, counted, fresh_ids, plain, read_queries, replace_queries, shown
from runner.queries.reading_pack import DRAFTED

TAKEN = "drafts-taken.jsonl"


class TakenDraft(FrozenModel):
    """A line of drafts-taken.jsonl: under which id of drafted.yaml a row's draft was put, with which text."""

    key: Sha256
    id: str
    text: str


@dataclass
class Kept:
    """What became of drafts: the ids of new and of changed ones, and how many were left out, and why.

    `as_is` stand in drafted.yaml; rows of `queries` gave the version a query already; `deleted` were deleted from
    drafted.yaml, and `edited` changed there since. `repeats` has a line on each that says what another row's says.
    """

    new: list[str] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    as_is: int = 0
    queries: int = 0
    deleted: int = 0
    edited: int = 0
    repeats: list[str] = field(default_factory=list)


class TakenDrafts:
    """The drafts of a folder; `queries` are those that the version has already. An InputError for unreadable files."""

    def __init__(self, folder: Path, queries: Sequence[QueryRow]) -> None:
        self.path, self.memory = folder / DRAFTED, folder / TAKEN
        self._texts = {row.id: row.text for row in (read_queries(self.path) if self.path.exists() else [])}
        self._queries = {plain(row.text) for row in queries}
        lines = read_jsonl(self.memory) if self.memory.exists() else ()
        self._taken = [checked(TakenDraft, fields, f"{self.memory}:{number}") for number, fields in lines]

    def usable(self) -> set[str]:
        """The keys of the rows that have a draft in drafted.yaml, or among the version's queries."""
        return {one.key for one in self._taken if one.id in self._texts or plain(one.text) in self._queries}

    def keep(self, drafts: Sequence[Draft], name: str) -> Kept:
        """Puts what is new at the end of drafted.yaml and what a row's answer changes in its draft's place."""
        kept = Kept()
        fresh: list[QueryRow] = []
        changes: dict[str, QueryRow] = {}
        for draft in drafts:
            change = self._taken_in(draft, kept)
            if change is not None:
                self._remember(draft.key, change)
                if change.id in kept.new:
                    fresh.append(change)
                else:
                    changes[change.id] = change
        if changes:
            replace_queries(self.path, changes)
        append_queries(self.path, fresh, f"{name}, drafted and not checked yet")
        if self._taken:  # last: a draft that nothing is remembered of is known by its text
            write_atomic(self.memory, jsonl_bytes(one.model_dump() for one in self._taken))
        return kept

    def _taken_in(self, draft: Draft, kept: Kept) -> QueryRow | None:
        """The draft with its id if it is new or changes one; else None, counted."""
        text = plain(draft.query.text)
        earlier = [one for one in self._taken if one.key == draft.key]
        last = earlier[-1] if earlier else None
        holder = next((one for one, held in self._texts.items() if plain(held) == text), None)
        if holder is not None:
            self._count_held(draft, holder, kept)
        elif text in self._queries or any(plain(one.text) in self._queries for one in earlier):
            kept.queries += 1
        elif last is not None and last.id in self._texts:
            if any(plain(one.text) == text for one in earlier) or plain(self._texts[last.id]) != plain(last.text):
                kept.edited += 1
                return None
            kept.replaced.append(last.id)
            return draft.query.model_copy(update={"id": last.id})
        elif any(plain(one.text) == text for one in earlier):
            kept.deleted += 1
        else:
            (fresh,) = fresh_ids("d", [*self._texts, *(one.id for one in self._taken)], 1)
            kept.new.append(fresh)
            return draft.query.model_copy(update={"id": fresh})
        return None

    def _count_held(self, draft: Draft, holder: str, kept: Kept) -> None:
        """Counts a draft whose text drafted.yaml has under the id `holder`: its own row's, or another's."""
        owners = {one.key for one in self._taken if one.id == holder}
        if owners - {draft.key}:
            kept.repeats.append(f"{draft.name}: {shown(draft.query.text)!r}: {holder} of {DRAFTED} says so already")
            return
        kept.as_is += 1
        known = TakenDraft(key=draft.key, id=holder, text=self._texts[holder])
        if known not in self._taken:
            self._taken.append(known)

    def _remember(self, key: str, query: QueryRow) -> None:
        self._texts[query.id] = query.text
        self._taken.append(TakenDraft(key=key, id=query.id, text=query.text))


def became(drafts: TakenDrafts, kept: Kept, n_no_query: int, n_left_out: int) -> str:
    """What became of answers, in words; what happened to none is not said."""
    new = f"{counted(len(kept.new), 'draft is', 'drafts are')} new in {drafts.path}, {len(kept.replaced)} replaced"
    others = (
        (kept.as_is, f"{kept.as_is} there already"),
        (kept.queries, f"{kept.queries} of rows that gave the version a query already"),
        (kept.deleted, f"{kept.deleted} were deleted before and stay out (they are remembered in {drafts.memory})"),
        (kept.edited, f"{kept.edited} were changed in {drafts.path.name} since and stay as they are there"),
        (n_no_query, f"{counted(n_no_query, 'row', 'rows')}: the drafter found no honest query"),
        (n_left_out, f"{n_left_out} left out"),
    )
    return "; ".join([new, *(text for count, text in others if count)]) + "."


def standing(rows: Sequence[DraftRow], usable: set[str]) -> str:
    """How many rows have a draft, and how many of them are wanted."""
    have = sum(row.key in usable for row in rows)
    return (
        f"{have} of {counted(len(rows), 'row has', 'rows have')} a usable draft, {len(rows) - have} still "
        f"{'lacks' if len(rows) - have == 1 else 'lack'} one; {WANTED_GENERATED} drafts are wanted."
    )
