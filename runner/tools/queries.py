"""What `queries` does to a version (pack, draw, check, add); each step says what it did and what comes next."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from runner.base.csv_files import Faults
from runner.base.errors import InputError, InputNeeded
from runner.base.places import DRIVER
from runner.base.records import Document
from runner.eval_set.asked import asked
from runner.eval_set.corpus import corpus_documents, need_corpus
from runner.eval_set.plan import MIN_QUERIES
from runner.eval_set.version import Version
from runner.queries.additions import add_queries, refuse_frozen, with_ids
from runner.queries.checks import CheckedQuery, QueryReport, check, read_files
from runner.queries.kinds import WANTED_HAND
from runner.queries.query_file import append_queries, count_line, plain, read_queries
from runner.queries.reading_pack import INDEX, PACK_SIZE, need_sampled, reading_folder, write_reading_pack
from runner.queries.traffic import bands, drawn, read_counts
from runner.tools.markdown import escaped, table

TRAFFIC_FILE = "traffic.yaml"
"""Where queries drawn from a log wait to be looked at, in the reading pack."""


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
        """Of the sample, and so of the pack and of a draw from a log."""
        return self.version.plan(rehearsal=False).sample.seed

    def again(self, action: str, *files: Path) -> str:
        """Return the command of another action on this version."""
        return f"{DRIVER} queries {action} {self.version.flags} {shlex.join(map(str, files))}".rstrip()

    def sample(self) -> str:
        """Return where the pack is, and what to do with it."""
        folder = write_reading_pack(self.version, self.documents, self.seed)
        n_documents = min(PACK_SIZE, sum(not document.status for document in self.documents))
        pack = f"{n_documents} of {len(self.documents)} documents to read: {folder} ({INDEX} lists them)"
        try:
            refuse_frozen(self.version)
        except InputError as error:
            return f"{pack}\n{error}"
        return (
            f"{pack}\nRead them and write {MIN_QUERIES} queries or more, {WANTED_HAND} of them a person's own, in the "
            f"form of {folder / 'queries.yaml.template'}; draft-queries.md beside it says how, to a language model "
            f"too.\nThen: {self.again('check')} FILE\nThen: {self.again('add')} FILE"
        )

    def check(self, files: Sequence[Path]) -> QueryReport:
        """Return the report on the version's queries or on those of the files."""
        paths = files or [self.version.queries_path]
        if not files and not paths[0].exists():
            raise InputNeeded(f"{paths[0]} does not exist yet. Begin with: {self.again('sample')}")
        # Drafts are counted with what the version has, unless that is what is checked.
        own = self.version.queries_path
        beside = [] if own in paths or not own.exists() else read_queries(own)
        rows = read_files(paths)
        # Those of files are held to what `add` would make of them.
        sample = {document.doc_id for document in self.documents}
        rows = with_ids(rows, sample, "", Faults()) if files else rows
        return check(self.version, self.documents, rows, beside)

    def take_log(self, path: Path, size: int) -> str:
        """Return what was drawn from a log, and where it waits to be looked at; InputError if queries are frozen.

        A file of an earlier draw is left as it is: somebody may have looked it over.
        """
        refuse_frozen(self.version)
        target, own = reading_folder(self.version) / TRAFFIC_FILE, self.version.queries_path
        known = {plain(one.text) for one in asked(read_queries(own) if own.exists() else [])}
        # What the version asks already is not drawn again.
        fresh = [row for row in read_counts(path) if plain(row.text) not in known]
        if not (rows := drawn(fresh, size, self.seed)):
            raise InputError(f"{path} has no query that the version has not.")
        if target.exists() and read_queries(target) != rows:
            raise InputError(f"{target} has another draw. Add it or delete it, then run again.")
        if not target.exists():
            append_queries(target, rows, self.version.number_name)
        by_band = ", ".join(
            f"{band} {sum(row.stratum == band for row in rows)} of {len(group):,}"
            for band, group in bands(fresh).items()
        )
        return (
            f"{len(rows)} of {len(fresh):,} queries drawn ({by_band}): {target}\n"
            "Read every one: delete what names a person, and mend each kind.\n"
            f"Then: {self.again('check', target)}\nThen: {self.again('add', target)}"
        )

    def add(self, files: Sequence[Path]) -> Iterator[str]:
        """Yield what each file added, and the command that comes next."""
        need_corpus(self.version)
        for path in files:
            yield add_queries(self.version, path)
        yield f"Next: {self.again('check')}"
        own = self.version.queries_path
        count = len(read_queries(own)) if own.exists() else 0
        if count < MIN_QUERIES:
            yield f"{MIN_QUERIES - count} more are needed: {DRIVER} next {self.version.flags} says how"
            return
        yield f"Then: {DRIVER} run {self.version.flags}      with --try to practise with packaged models"


HEAD = ("id", "origin", "kind", "rare words", "BM25 rank", "query", "source document", "look at")


def report_text(report: QueryReport) -> str:
    """Return the report in Markdown: a table of what is asked, and all findings, errors first."""
    lines = [table(HEAD, (_row(query, report) for query in report.queries))] if report.queries else []
    lines.append(f"{report.name}: {count_line([*{query.row.id: query.row for query in report.queries}.values()])}")
    for finding in sorted(report.findings, key=lambda finding: not finding.is_error):
        lines.append(f"- {'error' if finding.is_error else 'warning'}: {escaped(finding.message)}")
    return "\n".join(lines)


def _row(query: CheckedQuery, report: QueryReport) -> tuple[str, ...]:
    row, rank = query.row, query.rank
    return (
        escaped(query.asked.id),
        escaped(row.origin),
        escaped(row.kind),
        escaped(", ".join(query.rare or [])) or "-",
        "-" if rank is None else str(rank or ">100"),
        escaped(query.asked.text),
        escaped(query.title),
        ", ".join(report.flags(query.asked)),
    )
