"""Who speaks in the Congressional Record: the words that begin a turn."""

import re

_WORD = r"(?:[A-Z]\.(?:[A-Z]\.)?|(?:de|du|la|van|von)(?= )|[A-Z][\w'’-]{0,30})"
_MEMBER = (
    rf"(?:Mr|Ms|Mrs|Miss|Dr|Senator|Representative)\.? (?:Manager |Counsel )?(?P<name>{_WORD}(?: {_WORD}){{0,3}}?)"
    r"(?: of (?:the )?[A-Z]\w{1,20}(?: [A-Z]\w{1,20}){0,2})?"
)
_OFFICER = (
    r"The (?:Acting |ACTING )?(?:PRESIDING OFFICER|(?:VICE )?PRESIDENT|SPEAKER|CHAIR(?:MAN|WOMAN)?|CHIEF JUSTICE|CLERK"
    r"|CHAPLAIN|SECRETARY|SERGEANT AT ARMS)(?: pro tempore)?(?: (?:\([A-Z][^()]{1,60}\)|\[[A-Z][^\[\]]{1,60}\]))?"
)
_ADDRESS = r"(?:Mr|Madam|Ms|Mrs)\.? (?:(?:Acting|Deputy|Vice) )?(?:Speaker|President|Chair(?:man|woman)?)\b"
_TURN = re.compile(
    rf"(?P<speaker>{_MEMBER}|{_OFFICER})(?: \([^()]{{1,60}}\)| \[[^\[\]]{{1,60}}\])?(?:\.(?= |$)|[,;:]?(?= {_ADDRESS}))"
)
"""A full stop ends the name, or what was printed for it before "Mr. Speaker"."""
_INITIALS = tuple("MDSRT")
_CAPITALS = re.compile(r"[^\W\d_a-z]{2}")


def speaker(paragraph: str) -> str:
    """The speaker as printed ("Mr. BROWN of Ohio") of a paragraph that begins a turn; "" for any other.

    "Mr. CONYERS, Mr. Speaker, I rise" is a turn with a misprint. A member's last name is in capitals, of which the
    first may be followed by small letters (McCAIN); what is said of a member in small letters ("Mr. Lewis of Kentucky
    asked") begins nothing. An aside such as "(during the reading)" is no part of the name.
    """
    found = _TURN.match(paragraph) if paragraph[:1] in _INITIALS else None
    if not found or (found["name"] and not _CAPITALS.search(found["name"].rpartition(" ")[2])):
        return ""
    return found["speaker"]
