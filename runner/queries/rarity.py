"""Which words of a sample are rare, and how many of its documents hold all words of a query.

In long documents nearly every ordinary word occurs, so that only rare ones say whether a query gives its document away.
"""

from collections import Counter
from collections.abc import Sequence

from runner.base.records import Document
from runner.queries.wording import content_words, reading, stems

RARE_SHARE = 0.05
"""Of a sample's documents, the most that hold a rare word; FEWEST in a small sample."""

FEWEST = 2


class Vocabulary:
    """The content words of a sample's documents, by their stems."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._held = {document.doc_id: stems(reading(document)) for document in documents}
        self._holders = Counter(stem for held in self._held.values() for stem in held)
        self._most = max(FEWEST, int(RARE_SHARE * len(documents)))

    def shared(self, text: str, doc_id: str) -> list[str]:
        """Return the words of a text, in its order, that are rare and that the document holds in some form."""
        held = self._held[doc_id]
        return [
            word for stem, word in content_words(text).items() if stem in held and self._holders[stem] <= self._most
        ]

    def holders(self, text: str) -> int:
        """Return how many documents hold every content word of a text; 0 for a text without any."""
        asked = stems(text)
        return sum(asked <= held for held in self._held.values()) if asked else 0
