"""What `queries` does to a version (pack, drafts, check, additions); each step says what it did and what comes next."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runner.base.canonical import today
from runner.base.errors import BackendError, InputError, InputNeeded
from runner.base.places import DRIVER
from runner.base.progress import say
from runner.base.records import Document
from runner.embed.backends import Backend
from runner.eval_set.corpus import corpus_documents, need_corpus
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.shapes.labels import JudgeSpec
from runner.eval_set.version import Version
from runner.judge.models.run_judges import JudgeOptions, check_judges, named_judges
from runner.queries.additions import add_queries, refuse_frozen
from runner.queries.check_schemas import QueryReport
from runner.queries.checks import check, read_files
from runner.queries.draft_answers import Answered, file_answers, sifted
from runner.queries.draft_asks import DraftRow, all_draft_rows, draft_rows, write_draft_file
from runner.queries.drafting import ask_model, frozen
from runner.queries.kinds import WANTED_GENERATED, WANTED_HAND
from runner.queries.query_file import append_queries, counted, read_queries
from runner.queries.reading_pack import (
    INDEX,
    PACK_SIZE,
    need_sampled,
    pack_documents,
    reading_folder,
    write_reading_pack,
)
from runner.queries.taken_drafts import TakenDrafts, became, standing
from runner.queries.traffic import FILE, PublicWords, drawn, log_account, read_traffic
from runner.report.query_review import write_review


@dataclass
class Desk:
    """A version and its documents, from its archive or from `corpus_path` if that is gone."""

    version: Version
    corpus_path: Path | None

    @cached_property
    def documents(self) -> Sequence[Document]:
        """The sample; InputNeeded if there is none yet."""
        if self.corpus_path:
            need_sampled(self.version, self.corpus_path)
        return corpus_documents(self.version, self.corpus_path or self.version.embedded_corpus)

    @property
    def seed(self) -> int:
        """Of the sample, and so of the pack."""
        return self.version.plan(rehearsal=False).sample.seed

    @property
    def folder(self) -> Path:
        """Of the pack and of all that is made from it."""
        return reading_folder(self.version)

    @property
    def taken(self) -> TakenDrafts:
        """The drafts so far, as their files have them now."""
        own = self.version.queries_path
        return TakenDrafts(self.folder, read_queries(own) if own.exists() else [])

    def again(self, action: str, *files: Path) -> str:
        """The command of another action on this version."""
        return f"{DRIVER} queries {action} {self.version.flags} {shlex.join(map(str, files))}".rstrip()

    def sample(self) -> str:
        """Where the pack is, and what to do with it."""
        folder = write_reading_pack(self.version, self.documents, self.seed)
        n_documents = min(PACK_SIZE, sum(not document.status for document in self.documents))
        pack = f"{n_documents} of {len(self.documents)} documents to read: {folder} ({INDEX} lists them)"
        if said := frozen(self.version):
            return f"{pack}\n{said}"
        return (
            f"{pack}\nRead them; write {WANTED_HAND} queries or more of your own into a file, in the form of "
            f"{folder / 'queries.yaml.template'}, and add them to the version's "
            f"{self._count}: {self.again('add')} FILE\n"
            f"For {WANTED_GENERATED} more by a language model: {self.again('draft')} --judge\n"
            f"Then: {self.again('check')}"
        )

    def draft(self, per_document: int | None, judge: JudgeOptions | None) -> str:
        """What became of drafts by the plan's first judge; without `judge`, the file of what is still to be drafted."""
        if judge is not None:
            check_judges(self.version, [self._judge], judge)
        pack = pack_documents(self.version, self.documents, self.seed)
        rows = draft_rows(self.version, self.documents, pack, per_document)
        usable = self.taken.usable()
        left = [row for row in rows if row.key not in usable]
        if not left:
            return f"Nothing is left to draft. {standing(rows, usable)}\n{self._look()}"
        path = write_draft_file(self.folder, left)
        if judge is not None:
            return self._ask(left, judge)
        return (
            f"{counted(len(left), 'query', 'queries')} to draft: {path}, by the draft-instructions.md beside it. Each "
            "row has its request and, apart from it, the words that are forbidden. "
            f"{standing(rows, usable)}\n"
            'An answer file has one line a row: {"key": "as in the row", "kind": "as in the row", "query": "...", '
            '"note": "what serves the need"}\n'
            f"Then: {self.again('draft')} --answers FILE"
        )

    def take(self, paths: Sequence[Path]) -> str:
        """What became of the answers in the files."""
        rows = {row.key: row for _, row in all_draft_rows(self.folder)}
        return self._keep(file_answers(paths, rows), [])

    def check(self, files: Sequence[Path], backend: Backend | None) -> tuple[QueryReport, Path]:
        """The report on the version's queries or on those of the files, and its page."""
        paths = files or [self.version.queries_path]
        if not files and not paths[0].exists():
            begin = self.again("check", self.taken.path) if self.taken.path.exists() else self.again("sample")
            raise InputNeeded(f"{paths[0]} does not exist yet. Begin with: {begin}")
        report = check(self.version, self.documents, read_files(paths), backend)
        return report, write_review(report, self.folder)

    def take_log(self, path: Path, size: int, seed: int, column: str) -> str:
        """What a search log came to, and where the queries drawn from it wait to be looked at; InputError if frozen.

        A file of an earlier draw is left as it is: somebody may have looked it over.
        """
        refuse_frozen(self.version)
        target = self.folder / FILE
        traffic = read_traffic(path, PublicWords(self.documents), column)
        own = read_queries(self.version.queries_path) if self.version.queries_path.exists() else []
        rows = drawn(traffic, size, seed, [row.text for row in own])
        if not rows:
            raise InputError(f"Nothing of {path} is left to draw. {log_account(traffic, rows)}")
        if target.exists() and read_queries(target) != rows:
            raise InputError(f"{target} has another draw. Add it or delete it, then run again.")
        if not target.exists():
            append_queries(target, rows, self.version.number_name)
        return (
            f"{log_account(traffic, rows)}\n"
            f"drawn: {target}\n"
            "Read every one before anybody else does: patterns miss names that stand alone, names that are words, and "
            "what only a reader understands. Delete what names a person, and mend each kind.\n"
            f"Then: {self.again('check', target)}\n"
            f"Then: {self.again('add', target)}"
        )

    def add(self, files: Sequence[Path]) -> Iterator[str]:
        """What each file added, and the command that comes next."""
        need_corpus(self.version)
        for path in files:
            yield add_queries(self.version, path)
        yield f"Next: {self.again('check')}"
        if self._count < MIN_QUERIES:
            yield f"{MIN_QUERIES - self._count} more are needed: {DRIVER} next {self.version.flags} says how"
            return
        yield f"Then: {DRIVER} run {self.version.flags}      with --try to practise with packaged models"

    @property
    def _count(self) -> int:
        """How many queries the version has."""
        return len(read_queries(self.version.queries_path)) if self.version.queries_path.exists() else 0

    @property
    def _judge(self) -> JudgeSpec:
        """The plan's first judge, which drafts; an InputError for one that answers by file."""
        judge = named_judges(self.version, self.version.plan(rehearsal=False)).first
        if judge.by_file:
            raise InputError(
                f"{judge.model} answers by file (api: files in the plan), so there is no service to ask. Leave --judge "
                f"out, have it draft by the file that is written then, and hand in: {self.again('draft')} "
                "--answers FILE"
            )
        return judge

    def _ask(self, rows: Sequence[DraftRow], how: JudgeOptions) -> str:
        with how.opened(self._judge, self.version.work) as model:
            asked = ask_model(rows, model, self.folder, today())
        if not asked.answers and asked.failed:
            raise BackendError(f"No query was drafted. {asked.failed[0]}. Run the command again; replies are kept.")
        return self._keep(asked.answers, asked.failed)

    def _keep(self, answers: Sequence[Answered], failed: Sequence[str]) -> str:
        """Put what keeps the rules into drafted.yaml, and say of every answer what became of it."""
        found = sifted(answers, {document.doc_id: document for document in self.documents})
        drafts = self.taken
        kept = drafts.keep(found.kept, self.version.number_name)
        left_out = [*failed, *found.left_out, *kept.repeats]
        for line in left_out:
            say(f"left out: {line}")
        for line in found.no_query:
            say(f"no honest query: {line}")
        if left_out and not found.no_query and not drafts.path.exists():
            raise InputError("No draft keeps the rules, so there is nothing to look at; see above what each one broke.")
        rows = list({row.key: row for _, row in all_draft_rows(self.folder)}.values())
        what = became(drafts, kept, len(found.no_query), len(left_out))
        return f"{what}\n{standing(rows, drafts.usable())}\n{self._look()}".rstrip()

    def _look(self) -> str:
        """What to do with drafts next; "" if there are none."""
        path = self.taken.path
        if not path.exists():
            return ""
        own = [self.version.queries_path] if self.version.queries_path.exists() else []
        return (
            f"Look them over and delete what nobody would ask: {self.again('check', *own, path)}\n"
            f"Then: {self.again('add', path)}"
        )
