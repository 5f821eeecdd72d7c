"""What comes back for a drafted query, and the rules that it breaks; a draft is never repaired."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from runner.base.canonical import read_jsonl
from runner.base.errors import InputError
from runner.base.given_files import parsed, printable
from runner.base.records import Document
from runner.base.schema import FrozenModel, checked
from runner.eval_set.shapes.queries import QueryRow
from runner.judge.models.requests import Reply
from runner.queries.draft_asks import MOST_CHARS, DraftRow
from runner.queries.kinds import LITERAL_KINDS
from runner.queries.query_file import shown
from runner.queries.wording import DistinctiveWords, longest_run, reading, stems, words

TITLE_WORDS = 4
"""Words in a row of a title that name it; all of a shorter one."""

_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    "nov(?:ember)?|dec(?:ember)?"
)

_SERIES = (
    # A bill, a resolution, a report or an amendment of either chamber.
    r"(?:h|s)\.?\s?(?:r|j|con|amdt|rept|rpt|hrg|doc)?\.?\s?(?:res)?\.?\s?(?:no\.?\s?)?\d+",
    r"(?:house|senate|treaty|conference|committee|executive)\s(?:joint\s|concurrent\s)?"
    r"(?:bill|resolution|report|document|amendment|order|calendar)\s(?:no\.?\s?)?\d+",
    r"(?:amendment|bill|resolution|docket|order|proclamation|calendar)s?\s(?:no\.?\s?|number\s)?[a-z]{0,8}-?\d+",
    # A place in a law, a code or a register.
    r"(?:section|sec\.|part|subpart|chapter|subchapter|title|subtitle|article|paragraph|division)s?\s\d+",
    r"\u00a7{1,2}\s?\d+",
    r"\d+\s(?:u\.?\s?s\.?\s?c|c\.?\s?f\.?\s?r|f\.?\s?r|fed\.?\sreg|stat|cong\.?\srec)\b",
    r"(?:public|private)\slaw\s(?:no\.?\s)?\d+",
    r"(?:pub\.?\s?l|pvt\.?\s?l|p\.?\s?l)\.?\s?(?:no\.?\s?)?\d+",
    # A number that is one by its own form: RIN 1234-AB12, GAO-99-12345, EPA-HQ-OAR-2019-0001, R99999, IF12345.
    r"[a-z]{2,}(?:-[a-z]+)*-\d{2,4}-\d+",
    r"\d{4}-[a-z]{2}\d{2}\b",
    r"(?:r|rl|rs|if|in|lsb)\d{4,}",
)

_OCCASION = re.compile(r"\b(?:hearing|debate|record|committee|testimony|remarks|statement|floor)s?\b", re.IGNORECASE)

_DAY = re.compile(rf"\b(?:\d{{1,2}}\s(?:{_MONTHS})|(?:{_MONTHS})\.?\s\d{{1,2}})\b", re.IGNORECASE)

_NUMBERED = re.compile(rf"(?<![\w'\u2019])(?:{'|'.join(_SERIES)})", re.IGNORECASE)

_NAMED = frozenset({"act", "acts", "code", "resolution", "amendments", "treaty", "convention", "amendment"})


def cites(text: str, document: Document) -> bool:
    """Whether a query cites a number of a known series, an occasion and its day, or the document's name or title."""
    if _NUMBERED.search(text) or (_OCCASION.search(text) and _DAY.search(text)):
        return True
    title = words(document.title)
    run = longest_run(text, document.title)
    shared = len(stems(text) & stems(document.title))
    says_enough = shared >= 3 or (run == len(title) and shared > 0)
    if title and run >= min(TITLE_WORDS, len(title)) and says_enough:
        return True
    return any(_stands_as_name(name, document) for name in _names(text))


def with_number(text: str) -> bool:
    """Whether a text has the number of a bill, law, section, docket or report."""
    return _NUMBERED.search(text) is not None


def _names(text: str) -> Iterator[list[str]]:
    """A word with content and the word for an instrument that follows it, as in "clean air act": [air, act]."""
    asked = words(text)
    for before, noun in pairwise(asked):
        if noun in _NAMED and stems(before):
            yield [before, noun]


def _stands_as_name(name: list[str], document: Document) -> bool:
    """Whether a document writes these words together and each with a capital."""
    as_name = r"\s+".join(f"(?:{re.escape(word.capitalize())}|{re.escape(word.upper())})" for word in name)
    return re.search(rf"\b{as_name}\b", reading(document)) is not None


COPIED_WORDS = 6
"""Words in a row that a query in the asker's words must not share with the document."""

_POINTS_AT_PAPER = re.compile(
    r"\b(?:this|the (?:above|given|provided|following|present|said)) "
    r"(?:document|text|passage|excerpt|bill|act|law|section|report|rule|hearing|statement|resolution)\b",
    re.IGNORECASE,
)
_QUOTATION = re.compile(r"[\"\u201c\u201d]([^\"\u201c\u201d]+)[\"\u201c\u201d]")


class DraftAnswer(FrozenModel):
    """A row of a file of answers, or what a model wrote, which has no key."""

    key: str = ""
    kind: str
    query: str
    note: str = ""


class Answered(NamedTuple):
    """An answer with the row that it answers, and where it stands, for messages: "FILE:LINE" or "row 7".

    `origin` is that of a query made of it: the model's name, or "generated" if nobody says which one drafted.
    """

    row: DraftRow
    answer: DraftAnswer
    where: str
    origin: str = "generated"

    @property
    def name(self) -> str:
        """The answer in a message."""
        return f"{self.where}, {self.row.name}"


class Draft(NamedTuple):
    """A draft that keeps the rules: its row's key, the row of queries.yaml, its name in a message."""

    key: str
    query: QueryRow
    name: str


@dataclass(frozen=True)
class Sifted:
    """Drafts that keep the rules, a line on each that does not, and one on each row that has no honest query."""

    kept: list[Draft]
    left_out: list[str]
    no_query: list[str]


def sifted(answers: Sequence[Answered], documents: Mapping[str, Document]) -> Sifted:
    """The answers held to their rows; ids are d01, d02, ... in the order given."""
    found = Sifted([], [], [])
    for each in answers:
        answer, document = each.answer, documents.get(each.row.doc_id)
        text, why_not = answer.query.strip(), " ".join(answer.note.split())
        broken = (
            broken_rules(each.row, answer, document) if document else ["its document is not in the sample any more"]
        )
        if not text and why_not:
            found.no_query.append(f"{each.name}: {shown(why_not, 200)}")
        elif broken:
            asked = f" {shown(text)!r}:" if text else ""
            found.left_out.append(f"{each.name}:{asked} {'; '.join(broken)}")
        elif document:
            query = QueryRow(
                id=f"d{len(found.kept) + 1:02d}",
                text=text,
                kind=answer.kind,
                origin=each.origin,
                source_document=each.row.doc_id,
                stratum=document.stratum,
                note=printable(why_not),
            )
            found.kept.append(Draft(each.row.key, query, each.name))
    return found


def broken_rules(row: DraftRow, answer: DraftAnswer, document: Document) -> list[str]:
    """What is wrong with a draft, in words; none if it may be used."""
    text = answer.query.strip()
    if not text:
        return ["has neither a query nor, in its note, why there is none"]
    broken = [f"{row.kind!r} was wanted, {printable(answer.kind, 40)!r} came"] if answer.kind != row.kind else []
    if len(text) > MOST_CHARS:
        broken.append(f"has {len(text)} characters, {MOST_CHARS} are allowed")
    if not text.isprintable():
        broken.append("has a line break or a character that is not shown")
    if not stems(text) or (row.kind not in LITERAL_KINDS and len(text.split()) < 2):
        broken.append("asks nothing: no two words, or none with content")
    if "://" in text or re.search(r"<[a-z/!]", text, re.IGNORECASE):
        broken.append("has an address or markup in it")
    if pointing := _POINTS_AT_PAPER.search(text):
        broken.append(f"says {pointing[0]!r}, as if the asker had it in hand")
    return broken + _broken_by_kind(row, text, document)


def quotations(text: str) -> list[str]:
    """What stands between quotation marks in a query, of two words or more."""
    return [quoted.strip() for quoted in _QUOTATION.findall(text) if len(quoted.split()) >= 2]


def _broken_by_kind(row: DraftRow, text: str, document: Document) -> list[str]:
    if row.kind == "quote":
        return [] if quotations(text) else ["quotes nothing: a phrase in quotation marks is expected"]
    if row.kind == "citation":
        wanted = "the number of a bill, section, law, docket or report, an act by its name, or the title was wanted"
        return [] if cites(text, document) else [f"cites nothing: {wanted}"]
    if row.kind in LITERAL_KINDS:
        return []
    broken = []
    if used := DistinctiveWords(others=tuple(row.forbidden)).used_in(text):
        broken.append(f"has forbidden words: {', '.join(used)}")
    if (run := longest_run(text, document.text)) >= COPIED_WORDS:
        broken.append(f"copies {run} words in a row from the document")
    return broken


def reply_answer(reply: Reply) -> DraftAnswer:
    """What a model wrote as an answer; an InputError if it wrote something else or nothing."""
    if reply.problem:
        raise InputError(reply.problem)
    value = parsed(reply.text, "the reply", "One JSON object was asked for.")
    return checked(DraftAnswer, value, "the reply")


def file_answers(paths: Sequence[Path], rows: Mapping[str, DraftRow]) -> list[Answered]:
    """The answers of files with their rows, in the order of the files; all of them or none.

    An InputError names file and line of what is no answer, of an unknown key, and of a second answer that differs.
    """
    try:
        return list(_file_answers(paths, rows).values())
    except InputError as error:
        raise InputError(f"{error} Nothing of {', '.join(map(str, paths))} was taken.") from error


def _file_answers(paths: Sequence[Path], rows: Mapping[str, DraftRow]) -> dict[str, Answered]:
    found: dict[str, Answered] = {}
    for path in paths:
        seen = 0
        for number, fields in read_jsonl(path):
            where = f"{path}:{number}"
            answer = checked(DraftAnswer, fields, where)
            seen += 1
            if answer.key not in rows:
                raise InputError(f"{where}: no draft file has a row with the key {printable(answer.key)!r}. {_HINT}")
            if found.setdefault(answer.key, Answered(rows[answer.key], answer, where)).answer != answer:
                earlier = found[answer.key].where
                raise InputError(f"{where}: this key was answered before, and otherwise, at {earlier}. {_HINT}")
        if not seen:
            raise InputError(f"{path} holds no answers. {_HINT}")
    return found


_HINT = 'An answer is {"key": "as in the row", "kind": "...", "query": "...", "note": "..."}, one a line.'
