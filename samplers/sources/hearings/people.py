"""Who speaks in a hearing: the name that opens a turn, and what the headings over statements say of the speaker."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from functools import cache, lru_cache

from samplers.formats.headings import cut
from samplers.formats.printed.paragraphs import Paragraph
from samplers.sources.hearings.front import STATEMENT, is_heading

HasWord = Callable[[str], bool]

_SURE = (
    "Mr|Ms|Mrs|Miss|Mx|Dr|Hon|Prof|Professor|Rev|Reverend|Chairman|Chairwoman|Chairperson|Chair|Cochairman|Senator"
    "|Representative|Congressman|Congresswoman|Secretary|Governor|Gov|Administrator|Commissioner|Ambassador|Judge"
    "|Justice|Mayor|Sheriff|Admiral|Adm|Colonel|Col|Sergeant|Sgt|Lt|Maj|Gen|Capt"
)
"""Titles that open no sentence but a speaker's, and no heading set at the beginning of a paragraph."""

_DOUBTFUL = (
    "General|Director|Chief|Captain|Major|Lieutenant|Commander|Corporal|Private|Officer|Detective|Delegate|Agent"
    "|Marshal|President|Chancellor|Provost|Dean|Superintendent|Treasurer|Councilman|Councilwoman|Councilmember"
    "|Supervisor|Comptroller|Assemblyman|Assemblywoman|Minister|Speaker|Counsel|Inspector|Member|Trustee|Sister|Father"
    "|Rabbi|Bishop|Archbishop|Cardinal|Imam|Pastor|Lord|Lady|Sir|Baroness|Prince|Princess|Elder|Coach|Nurse"
)
"""Titles that are other words too ("General Comments. We think …"): they need a name that is known."""

_QUALIFIERS = (
    "Acting|Deputy|Assistant|Associate|Under|Vice|Lieutenant|Lt|Major|Maj|Brigadier|Brig|Rear|Chief|First|Staff|Master"
    "|Principal|Ranking|Minority|Majority|Co|Special|Executive|Attorney|Surgeon|Inspector|Comptroller|Solicitor"
    "|Postmaster|Adjutant|Prime"
)
_OFFICES = (
    "Chairman|Chair|Chairwoman|Chairperson|Cochairman|Cochair|Clerk|Witness|Reporter|Court Reporter|Speaker|President"
    "|Presiding Officer|Interpreter|Translator|Court|Moderator|Ranking Member"
)
_UNNAMED = (
    r"(?:(?:An? )?(?:Unidentified|Audience|Unknown)(?: (?:Speaker|Voice|Witness|Member|Participant|Male|Female|Man"
    r"|Woman)){1,3}|(?:A )?(?:Voices?|Interpreter|Translator|Participant|Moderator))"
)
_PARTICLE = r"(?:Ste?\.|(?:[A-Z]\.)++|d[aeiu]|del|della|dos|la|le|van|von|der|den|ten|ter|al|el|bin|ibn)"
_WORD = r"(?:d['’])?[A-Z][\w'’‘`-]{1,40}"
_NAME = rf"(?:{_PARTICLE} ?){{0,3}}{_WORD}(?: (?:{_PARTICLE} ){{0,2}}{_WORD}){{0,2}}(?:,? (?:Jr|Sr|II|III|IV)(?=\b))?"
_TITLE = rf"(?:(?:{_QUALIFIERS})\.?[ -]){{0,3}}(?:{_SURE}|{_DOUBTFUL})"
_LABEL = re.compile(
    rf"(?:(?P<office>The (?:Acting |Vice |Co-)?(?:{_OFFICES})|{_UNNAMED})"
    rf"|(?P<title>{_TITLE})\.? ?(?P<name>{_NAME}(?: of [A-Z]\w+(?: [A-Z]\w+)?)?)"
    rf"(?P<others>(?:(?:,| and|, and) {_TITLE}\.? {_NAME}){{0,3}}))"
    r"(?: ?\[[^\[\]]{1,40}\]| ?\([^()]{1,40}\))?(?:\.|(?<=\.\]))(?:\\\d{1,3}\\)? ?(?=\S)"
)
_SURE_TITLE = re.compile(rf"(?:(?:{_QUALIFIERS})\.?[ -]){{0,3}}(?:{_SURE})$|[A-Z][a-z]{{1,4}}\. ")
_UNTITLED = re.compile(rf"(?P<label>(?:(?P<first>[A-Z][\w'’-]{{1,20}}\.?) )?(?P<last>{_WORD}))\. (?=\S)")
_ABBREVIATED = frozenset(("Mr", "Ms", "Mrs", "Dr", "Hon", "Prof", "Rev", "Gov", "Adm", "Col", "Sgt", "Lt", "Gen"))
_NOT_NAMES = frozenset(
    (
        *("and", "as", "but", "for", "if", "no", "ok", "okay", "so", "thanks", "the", "to", "well", "yes"),
        *f"{_SURE}|{_DOUBTFUL}".lower().split("|"),
    )
)

LABEL_LENGTH = 80
"""Characters within which a full stop follows the first word of a speaker's name."""

NAMES = 2_000
"""Names of which is remembered what they come to: each opens many turns."""

LONGEST_TITLE = 4
"""Characters of an abbreviated title, its full stop included."""

MIN_REPEATS = 3
"""Turns that a doubtful title and a name must open to need no other evidence."""

AFFILIATION_LENGTH = 120
"""Characters of an affiliation, which stands in the context of every turn of its speaker."""

N_STATEMENTS = 300
"""Headings over statements that are read; the most in one real hearing is 34."""

HEADING_LINES = 8
"""Lines that such a heading may have."""

ABBREVIATION = 5
"""Letters of the longest word that may be an abbreviation."""

_SHARED = re.compile(r" of | and |,")
"""In a label: a name that another speaker has too, or several speakers."""
_FOOTNOTE = re.compile(r"\\\d{1,3}\\")
_COMPANY = re.compile(r"[,;]? \(?(?:ALSO )?ACCOMPANIED BY\b.*", re.I)
_NAMED = re.compile(
    r" *(?:AND )?(?P<name>[^,;]{3,60})(?:, (?:(?:JR|SR|ESQ)\b\.?|II|III|IV|[A-Z][A-Za-z]?\.(?:[A-Z][A-Za-z]?\.?){1,3}"
    r"|PH\.? ?D\.?|USN?A?F?|MD|CPA|RN))*, (?P<affiliation>[^;]{4,400})",
    re.I,
)
_SMALL_WORDS = frozenset(("a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"))
_LETTER = r"[^\W\d_]"
_CAPITALS = re.compile(r"(?:(?<=[\w.])(?P<possessive>['’]S)|[A-Z]{2,}|(?<= )A(?= ))\b")


def speakers(openings: Mapping[int, str], names: Set[str]) -> dict[int, str]:
    """Return the speaker of each paragraph that opens a turn, by its key in `openings`, as printed but for asides.

    `names` are the first and last names, in small letters, of those whom the headings over statements announce. A
    title that may be another word counts if its name is one of them or of another speaker, if it opens MIN_REPEATS
    paragraphs with that name, or if another sentence mentions both. Without a title, a first and a last name count,
    and one of them that opens two paragraphs; so does a speaker's name after a title that is misspelt.
    """
    near = {key: text for key, text in openings.items() if text.find(".", 0, LABEL_LENGTH) > 0}
    matches = {key: match for key, text in near.items() if (match := _LABEL.match(text))}
    labels = {key: _normal(*match.group("office", "title", "name", "others")) for key, match in matches.items()}
    counts = Counter(labels.values())
    # First the titles that are sure, then those that a name or a repeat makes so.
    sure = {key for key, match in matches.items() if match["office"] or _SURE_TITLE.match(match["title"])}
    known = names | {last_name(matches[key]["name"]) for key in sure if matches[key]["name"]}
    for key in matches.keys() - sure:
        label = labels[key]
        is_known = last_name(matches[key]["name"]) in known or counts[label] >= MIN_REPEATS
        if not is_known and not any(text.find(label, 1) > 0 for text in openings.values()):
            del labels[key]
    # Last the names that stand without a title.
    untitled = {key: match for key, text in near.items() if key not in labels and (match := _UNTITLED.match(text))}
    repeats = Counter(match["label"] for match in untitled.values())
    return labels | {
        key: match["label"] for key, match in untitled.items() if _is_speaker(match, names, known, repeats)
    }


def _is_speaker(match: re.Match[str], names: Set[str], known: Set[str], counts: Counter[str]) -> bool:
    first, last = (match["first"] or "").lower(), match["last"].lower()
    if last not in known or first.rstrip(".") in _NOT_NAMES or last in _NOT_NAMES:
        return False
    if not first:
        return last in names and counts[match["label"]] > 1
    return first in names or (first.endswith(".") and len(first) <= LONGEST_TITLE)


@lru_cache(maxsize=NAMES)
def _normal(office: str | None, title: str, name: str, others: str) -> str:
    if office:
        return office
    stop = "." if title.rpartition(" ")[2] in _ABBREVIATED else ""
    label = f"{title}{stop} {name}{others}"
    return f"{label}." if label.endswith((" Jr", " Sr")) else label


@lru_cache(maxsize=NAMES)
def last_name(name: str) -> str:
    """Return the last name in small letters, without the state behind it."""
    words = name.partition(" of ")[0].partition(",")[0].lower().split()
    return words[-1] if words[-1] not in ("jr", "sr", "ii", "iii", "iv") or len(words) == 1 else words[-2]


def affiliated(page: Sequence[Paragraph], speakers: Collection[str], has_word: HasWord) -> Mapping[str, str]:
    """Return the speakers whose affiliation a heading states, each as "Ms. Heath, Director, Bureau of Lamps".

    A last name that two headings give to different people is left as it is, and so is "Mr. Hill of Montana", a
    member whose name a witness has. `has_word` is of the text, which spells words in small letters.
    """
    stated: dict[str, set[str]] = {}
    places = [i for i, p in enumerate(page) if is_heading(p) and STATEMENT.match(p.text.upper())]
    for place in places[:N_STATEMENTS]:
        people = re.split(r" (?:OF|BY|FROM) ", _heading(page, place), maxsplit=1, flags=re.I)[-1]
        for match in filter(None, map(_NAMED.match, people.split(";"))):
            stated.setdefault(last_name(match["name"]), set()).add(match["affiliation"].strip(" .").upper())
    labels = {}
    for speaker in speakers:
        affiliations = stated.get(last_name(speaker), set()) if not _SHARED.search(speaker) else set()
        # Two people of one last name stay as they are.
        if len(affiliations) == 1:
            affiliation = recased(next(iter(affiliations)), has_word)
            if affiliation.lower() not in speaker.lower():
                labels[speaker] = f"{speaker}, {cut(affiliation, AFFILIATION_LENGTH)}"
    return labels


def _heading(page: Sequence[Paragraph], first: int) -> str:
    """Return the lines of a heading over a statement as one, without those who only accompany the witness."""
    lines = [page[first].text]
    for paragraph in page[first + 1 : first + HEADING_LINES]:
        if not is_heading(paragraph) or STATEMENT.match(paragraph.text.upper()):
            break
        if not lines[-1].endswith((",", ";", "AND", "OF", "FOR")) and paragraph.is_apart:
            break
        lines.append(paragraph.text)
    return _COMPANY.sub("", _FOOTNOTE.sub("", " ".join(lines)))


def word_finder(text: str) -> HasWord:
    """Return a function that says whether the text has a word, with no letter directly before or after it."""

    @cache
    def has_word(word: str) -> bool:
        return re.search(rf"{word}(?<!{_LETTER}{word})(?!{_LETTER})", text) is not None

    return has_word


def recased(title: str, has_word: HasWord) -> str:
    """Return a title in capitals as one would write it: words that its text spells in small letters get them.

    A word of up to ABBREVIATION letters that occurs nowhere in small letters stays in capitals.
    """
    if any(any(map(str.islower, word)) for word in title.split() if word not in _SMALL_WORDS):
        return title
    return _CAPITALS.sub(lambda match: _recased_word(match, has_word), title)


def _recased_word(match: re.Match[str], has_word: HasWord) -> str:
    word, lower, before = match[0], match[0].lower(), match.string[: match.start()]
    # Possessives, small words and ordinals ("21ST") are small whatever the text has.
    is_small = lower in _SMALL_WORDS and before.endswith((" ", "("))
    if match["possessive"] or is_small or before[-1:].isdigit():
        return lower
    spellings = (word.capitalize(), lower, lower.removesuffix("s"))
    return word.capitalize() if len(word) > ABBREVIATION or any(map(has_word, spellings)) else word
