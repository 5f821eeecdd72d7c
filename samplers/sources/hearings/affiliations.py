"""What the headings over statements say of a speaker: "Director, Bureau of Lamps"."""

import re
from collections.abc import Collection, Mapping, Sequence

from samplers.formats.headings import cut
from samplers.formats.printed.paragraphs import Paragraph
from samplers.sources.hearings.facts import Words, recased
from samplers.sources.hearings.front import STATEMENT, is_heading
from samplers.sources.hearings.speakers import last_name

AFFILIATION_LENGTH = 120
"""Characters of an affiliation, which stands in the context of every turn of its speaker."""

N_STATEMENTS = 300
"""Headings over statements that are read; the most in one real hearing is 34."""

_LINES = 8
"""Lines that a heading may have apart from its first."""

_SHARED = re.compile(r" of | and |,")
"""In a label: a name that another speaker has too, or several speakers."""
_FOOTNOTE = re.compile(r"\\\d{1,3}\\")
_COMPANY = re.compile(r"[,;]? \(?(?:ALSO )?ACCOMPANIED BY\b.*", re.I)
_NAMED = re.compile(
    r"(?P<name>[^,;]{3,60})(?P<honours>(?:, (?:(?:JR|SR|ESQ)\b\.?|II|III|IV|[A-Z][A-Za-z]?\.(?:[A-Z][A-Za-z]?\.?){1,3}"
    r"|PH\.? ?D\.?|USN?A?F?|MD|CPA|RN))*), (?P<affiliation>[^;]{4,400})",
    re.I,
)


def affiliated(found: Sequence[Paragraph], speakers: Collection[str], words: Words) -> Mapping[str, str]:
    """The speakers whose affiliation a heading states, each as "Ms. Heath, Director, Bureau of Lamps".

    A last name that two headings give to different people is left as it is, and so is "Mr. Hill of Montana", a
    member whose name a witness has. `words` are those of the text, which spells them in small letters.
    """
    stated: dict[str, set[str]] = {}
    places = [i for i, p in enumerate(found) if is_heading(p) and STATEMENT.match(p.text.upper())]
    for place in places[:N_STATEMENTS]:
        for name, affiliation in _people(_heading(found, place)):
            stated.setdefault(name, set()).add(affiliation.upper())
    whole = {name: next(iter(one)) for name, one in stated.items() if len(one) == 1}
    named = ((speaker, whole.get(last_name(speaker), "")) for speaker in speakers if not _SHARED.search(speaker))
    stated_of = ((speaker, recased(affiliation, words)) for speaker, affiliation in named)
    return {
        speaker: f"{speaker}, {cut(affiliation, AFFILIATION_LENGTH)}"
        for speaker, affiliation in stated_of
        if affiliation.lower() not in speaker.lower()
    }


def _heading(found: Sequence[Paragraph], first: int) -> str:
    """The lines of a heading over a statement as one."""
    lines = [found[first].text]
    for paragraph in found[first + 1 : first + _LINES]:
        if not is_heading(paragraph) or STATEMENT.match(paragraph.text.upper()):
            break
        if not lines[-1].endswith((",", ";", "AND", "OF", "FOR")) and paragraph.is_apart:
            break
        lines.append(paragraph.text)
    return _COMPANY.sub("", _FOOTNOTE.sub("", " ".join(lines)))


def _people(heading: str) -> list[tuple[str, str]]:
    """The last names in small letters and the affiliations of those who make a statement."""
    people = re.split(r" (?:OF|BY|FROM) ", heading, maxsplit=1, flags=re.I)[-1]
    matches = (_NAMED.match(re.sub(r"^ *(?:AND )?", "", one, flags=re.I)) for one in people.split(";"))
    return [(last_name(match["name"]), match["affiliation"].strip(" .")) for match in matches if match]
