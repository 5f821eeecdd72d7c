"""What the cover of a committee report says: number, chamber, committee, title, the measure that it accompanies."""

import re
from typing import NamedTuple

_NUMBER = re.compile(
    r"\n*\[(?P<chamber>House|Senate) (?P<executive>Executive )?Report (?P<congress>\d{1,3})-(?P<number>\d{1,4})"
    r"(?:,? Part (?P<part>\d{1,2}|[IVX]{1,5}))?\]\n"
)
_FIRST_RULE = re.compile(r"^={40,}$", re.M)
_SMALL_RULE = re.compile(r"^ {4,}_{4,}$", re.M)
_ACCOMPANIES = re.compile(r"\[To accompany ([^\]]{1,120})\]")
_COMMITTEE = re.compile(r"from\s+the\s+([Cc]ommittee\s+(?:on|of)\s+[^\n]{1,80}(?:\n[^\n]{1,80})?),\s+submitted")
_COVER_LENGTH = 6_000
"""Characters in which a cover ends; the longest of 10 measured ends at 858."""

_ROMAN = ("", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X")


class Cover(NamedTuple):
    """Facts of a cover; "" for what it leaves out. `end` is where the printed text begins, with its title."""

    chamber: str
    kind: str
    """srpt, hrpt or erpt, as in the id of the package."""
    congress: str
    number: str
    part: str
    title: str
    committee: str
    accompanies: str
    end: int

    @property
    def package(self) -> str:
        """Govinfo's id, such as CRPT-118srpt62."""
        return f"CRPT-{self.congress}{self.kind}{self.number}" + (f"-pt{self.part}" if self.part else "")

    @property
    def citation(self) -> str:
        """As people cite it: "S. Rept. 118-62"."""
        series = {"srpt": "S. Rept.", "hrpt": "H. Rept.", "erpt": "S. Exec. Rept."}[self.kind]
        return f"{series} {self.congress}-{self.number}" + (f", Part {self.part}" if self.part else "")


def read_cover(text: str) -> Cover | None:
    """The facts at the beginning of a report, None if the text does not begin as one."""
    found = _NUMBER.match(text)
    if not found:
        return None
    head = text[:_COVER_LENGTH]
    rule = _FIRST_RULE.search(head)
    end = rule.end() if rule else found.end()
    stop = _SMALL_RULE.search(head, end)
    title = " ".join(head[end : stop.start()].split()) if stop else ""
    committee, accompanies = _COMMITTEE.search(head), _ACCOMPANIES.search(head)
    part = found["part"] or ""
    kind = "erpt" if found["executive"] else f"{found['chamber'][0].lower()}rpt"
    return Cover(
        chamber=found["chamber"].lower(),
        kind=kind,
        congress=found["congress"],
        number=found["number"],
        part=str(_ROMAN.index(part)) if part in _ROMAN[1:] else part,
        title=title,
        committee=" ".join(committee[1].split()) if committee else "",
        accompanies=" ".join(accompanies[1].split()) if accompanies else "",
        end=end,
    )
