"""A collection of BEIR's layout in which each query is a trap: one text answers it, others tempt a careless reader."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.support.small_collection import documents, qrels, write_collection
from tests.support.small_set import QUERIES


@dataclass(frozen=True)
class Trap:
    """A query, the text that answers it, and texts that must stand below."""

    name: str
    query: str
    answer: str
    decoys: tuple[str, ...]

    @property
    def answer_id(self) -> str:
        """Id of the answer's document."""
        return f"{self.name}-0"

    def rows(self) -> list[dict[str, str]]:
        """Return the rows of corpus.jsonl, the answer first."""
        return [{"_id": f"{self.name}-{n}", "text": text} for n, text in enumerate((self.answer, *self.decoys))]


TRAPS = (
    Trap(
        "contraction",
        "Why don't my turbines spin, and what isn't it that they'd need?",
        "Turbines that will not spin need a brake inspection.",
        ("We don't, they don't, it isn't, she'd: t t t d.", "Spinning wool isn't hard; it doesn't hurt."),
    ),
    Trap(
        "possessive",
        "the Warden's ledger",
        "Each warden keeps a ledger.",
        ("It’s the clerk’s list, the mayor’s list and the town’s list.", "Ledgers' covers aren't kept."),
    ),
    Trap(
        "latin",
        "fodder crops, e.g. vetch, i.e. legumes",
        "Vetch and other legumes are fodder crops.",
        ("Plan E, plan G, plan I: e.g. a plan, i.e. a plan.", "E. G. Ives of plan E."),
    ),
    Trap(
        "letter",
        "do I need form Q to moor a houseboat",
        "A houseboat may moor without a form.",
        ("I, Q, I, Q and I.", "Q is for quay."),
    ),
    Trap("digit", "rule 7 of beekeeping", "Rule 7 says how beekeeping is done.", ("Rule 8 on beekeeping.", "7 bees.")),
    Trap(
        "path",
        "§ 5(a)(1)(B)",
        "As section 5(a)(1)(B) provides, hulls are painted.",
        ("Section 5(a)(1)(A), and 1 B.", "Section 5(b)(1), with (a) and (B) and (1).", "5 a 1 B"),
    ),
    Trap(
        "code",
        "42 USC § 1983",
        "An action at law under 42 U.S.C. 1983 lies.",
        ("In 1983, 42 ships were usable.", "42 U.S.C. 1981 differs, as USC 42 does."),
    ),
    Trap("senate", "S. 12", "They read S. 12 aloud.", ("The 12 sailors read.", "They read H.R. 12 aloud, s and s.")),
    Trap("house", "HR 1234", "A vote on H. R. 1234 was taken.", ("A vote on S. 1234.", "1234 votes on HR matters.")),
    Trap(
        "rule",
        "17 CFR 240.10b-5",
        "Under 17 C.F.R. 240.10b–5 that is fraud.",
        ("17 CFR 240.10a-1 and 5 others.", "240 of 17 in 10b and 5: CFR."),
    ),
    Trap("amount", "1000 saplings", "A grant of 1,000 saplings.", ("1 of 000 saplings.", "100 saplings, 10,000 nuts.")),
    Trap(
        "accent",
        unicodedata.normalize("NFD", "El Niño crème brûlée"),
        unicodedata.normalize("NFC", "El Niño spoils crème brûlée."),
        ("El Nino: creme brulee.", "n n ni o bru le e cre me"),
    ),
    Trap(
        "decomposed",
        unicodedata.normalize("NFC", "señal de público"),
        unicodedata.normalize("NFD", "La señal es de uso público."),
        ("De las senas, de lo publico.", "De se al de p blico."),
    ),
)
"""By what a reader could get wrong. More of them may be added: every figure is worked out from the rows."""

EMPTY = [{"_id": "empty-0", "title": "", "text": ""}, {"_id": "empty-1", "text": " \n"}]

RENORMALISED = 2
"""Texts of TRAPS that are not in NFC: a query, and an answer."""

GERMAN = (
    "Der Bürgermeister hat das Recht, die Brücke zu sperren, wenn das Wasser über den Pegel steigt und es dunkel ist.",
    "Die Gebühr für den Markt wird von der Stadt mit dem Beginn des Jahres erhoben und nicht von den Händlern selbst.",
    "Wer einen Hund in der Stadt hält, ist verpflichtet, ihn an der Leine zu führen, auch wenn er noch sehr jung ist.",
)


def write_traps(folder: Path, traps: Sequence[Trap] = TRAPS) -> Path:
    """Write a collection of the traps, empty documents, and the small collection, so that a gate has enough."""
    queries = {f"q{place}": text for place, (_, text) in enumerate(QUERIES, start=1)}
    return write_collection(
        folder,
        rows=[*documents(), *(row for trap in traps for row in trap.rows()), *EMPTY],
        queries=queries | {trap.name: trap.query for trap in traps},
        judged=qrels() | {trap.name: {trap.answer_id: 1} for trap in traps},
    )


def write_german(folder: Path) -> Path:
    """Write a collection in German: every document twenty times with another number, each query a document's words."""
    rows = [{"_id": f"d{n}-{i}", "text": f"{text} Nummer {n}."} for n in range(20) for i, text in enumerate(GERMAN)]
    queries = {f"q{n}": f"{GERMAN[n % 3]} Nummer {n}" for n in range(20)}
    judged = {f"q{n}": {f"d{n}-{n % 3}": 1} for n in range(20)}
    return write_collection(folder, rows=rows, queries=queries, judged=judged)
