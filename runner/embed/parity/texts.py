"""The 32 texts on which two backends of one encoder are compared, 16 per side.

Chosen for what goes wrong: tokenizers (unicode, citations, tables), prompts (one text on both sides), truncation (texts
that end exactly at the limit, and past it).
"""

from collections.abc import Callable, Sequence
from itertools import chain, cycle, islice
from typing import NamedTuple

from runner.base.canonical import digest

UNLIMITED = 2000
"""How many tokens the long texts have for an encoder without a limit."""

SHARED = {
    "sentence": "The Administrator shall publish a list of covered facilities not later than 180 days after enactment.",
    "one word": "Repealed.",
    "one sign": "§",
    "number": "1395",
    "citation": "42 U.S.C. 1396a(a)(10)(A)(i)(VIII); Pub. L. 117-169, § 11001(b), 136 Stat. 1818; 26 CFR 1.401(k)-1(f)",
    "scripts": "Señor Núñez c. Québec: “naïve” – façade; Straße, Ελλάδα, Київ, 東京都, العربية, हिन्दी",
    "emoji and joiners": "Yes \U0001f44d\U0001f3fd, the panel \u2696\ufe0f; a \ufb01le, a no\u200dbreak, Cafe\u0301.",
    "table": "Year\tAmount\n---|---\n2023 | $1,250,000\n2024 | $ 980,500.75\n2025 | (12,000)\nTotal\t\t$2,218,500",
}
"""Embedded as documents and as queries, so that what the prompts do shows."""

DOCUMENTS = {
    "heading": "TITLE IV—MISCELLANEOUS\nSubtitle B—Reports to Congress\nSEC. 412. SENSE OF THE SENATE.",
    "enumeration": "(a) IN GENERAL.—(1) The term “dam” means—(A) a barrier that (i) is 25 feet high; or (ii) impounds "
    "50 acre-feet; and (B) any dike joined to it.\n(b) EXCEPTION.—Paragraph (1)(A)(ii) does not apply to a levee.",
    "turn": "Mr. ORTEGA. I thank the gentlewoman for yielding. Madam Chair, how many inspectors were on duty that "
    "night?\nMs. LIN. Two, sir. We had asked for seven, and the request was denied in March and again in June.",
    "long": "The Commission finds that ferries carried 31 million passengers in the year before the strike, that a "
    "third of them had no other way to reach a hospital within an hour, and that the reserve fund would have paid for "
    "eleven days of service. It further finds that the operators gave notice on a Friday evening, that the notice "
    "named no date, and that the governor's office learned of it from a newspaper. Witnesses described patients who "
    "slept in cars, a school that closed, and a cooperative of oyster growers that lost its whole harvest. The "
    "Commission recommends a standing agreement on minimum service, an arbiter who is appointed before a dispute "
    "begins, and a public account of the fund every quarter.",
}

QUERIES = {
    "question": "who must be told before a ferry service stops?",
    "key words": "dam safety inspection funding rural counties",
    "short citation": "26 USC 401(k)",
    "misspelled": "goverment liabilty for vacine injurys",
    "quotation": "“sense of the Senate” that the President should",
    "upper case": "FREEDOM OF INFORMATION ACT EXEMPTION 7(A)",
    "two sentences": "My benefits were stopped. Can I appeal without a lawyer?",
}

# One passage after the other, each on something else: wherever a backend cuts too early, a topic is lost.
_TOPICS = (
    "the state shall pay each farm for the water that it leaves in the river during a dry summer",
    "no bank may close the account of a small shop without a letter that gives the reason",
    "a nurse who works at night in a county home is paid half as much again as by day",
    "the court may hear a case on the land of the tribe if both sides ask for it in writing",
    "every train that carries oil through a city must slow down near a school or a church",
    "the army shall sell the old fort to the town for one dollar if it will be a museum",
    "a teacher may leave the class when the air is bad and the heat is over ninety degrees",
    "the board shall count the birds on the island each spring and send the figures to the press",
)
_ENDINGS = (" and a volcano may open", " or the wedding cake is cut")
_TAIL = " This last part lies past the limit and speaks of horses, copper mines and the price of paper."


class Text(NamedTuple):
    """A text and what a message calls it."""

    name: str
    text: str


class Texts(NamedTuple):
    """Sixteen documents and sixteen queries.

    `at_limit` are the places of two documents of exactly the encoder's limit that differ in their last words;
    `past_limit` is the first of them with more words behind it.
    """

    documents: tuple[Text, ...]
    queries: tuple[Text, ...]
    at_limit: tuple[int, int]
    past_limit: int

    @property
    def sha256(self) -> str:
        """Digest of all texts in order."""
        return digest([[row.text for row in rows] for rows in (self.documents, self.queries)])


def parity_texts(count: Callable[[Sequence[str]], Sequence[int]], limit: int) -> Texts:
    """The texts for an encoder that reads `limit` tokens (0: any number); `count` counts a document's tokens.

    If no wording meets the limit exactly, the longest below it stands in.
    """
    ending = [_of_length(count, limit or UNLIMITED, words) for words in _ENDINGS]
    far = ending[0] + _TAIL * 3
    documents = [
        *_rows(SHARED | DOCUMENTS),
        Text("at the limit", ending[0]),
        Text("at the limit, another ending", ending[1]),
        Text("past the limit", ending[0] + _TAIL),
        Text("half the limit", _of_length(count, (limit or UNLIMITED) // 2, _ENDINGS[0])),
    ]
    first = len(SHARED) + len(DOCUMENTS)
    queries = [*_rows(SHARED | QUERIES), Text("far past the limit", far)]
    return Texts(tuple(documents), tuple(queries), (first, first + 1), first + 2)


def _rows(texts: dict[str, str]) -> list[Text]:
    return [Text(name, text) for name, text in texts.items()]


def _of_length(count: Callable[[Sequence[str]], Sequence[int]], n_tokens: int, ending: str) -> str:
    """The longest text of at most `n_tokens` tokens that ends in `ending`; at least one word stands before it."""
    low, high = 1, max(n_tokens, 2)
    while high - low > 1:
        middle = (low + high) // 2
        if count([_words(middle) + ending])[0] <= n_tokens:
            low = middle
        else:
            high = middle
    # Passages grow side by side, so a word more can take a token less: the neighbourhood is searched.
    near = [_words(n) + ending for n in range(max(1, low - 8), low + 9)]
    counts = list(count(near))
    fitting = [(int(n), -place) for place, n in enumerate(counts) if n <= n_tokens]
    return near[-max(fitting)[1]] if fitting else near[0]


def _words(n_words: int) -> str:
    """So many words, shared out over the topics in order."""
    share, rest = divmod(n_words, len(_TOPICS))
    passages = (islice(cycle(topic.split()), share + (place < rest)) for place, topic in enumerate(_TOPICS))
    return " ".join(chain.from_iterable(passages))
