"""Which language texts are in, by the share of each language's stop words."""

import re
from collections import Counter
from collections.abc import Iterable

from runner.base.records import LANGUAGES

READ = 2_000_000
"""Characters that are looked at: a language is told from far fewer."""

_LEAST = 0.15
"""Share of stop words in running text; German has 0.45, a list of names next to none."""


def language_of(texts: Iterable[str]) -> str:
    """Return the language whose stop words are most of the words, in lower case; "" if none has enough."""
    from bm25s import stopwords

    counts: Counter[str] = Counter()
    left = READ
    for text in texts:
        counts.update(re.findall(r"[^\W\d_]+", text[:left].lower()))
        left -= len(text)
        if left <= 0:
            break
    lists = {"english": stopwords.STOPWORDS_EN_PLUS}
    lists |= {name: getattr(stopwords, f"STOPWORDS_{name.upper()}") for name in sorted(LANGUAGES.values())}
    n_stop_words = {name: sum(counts[word] for word in set(words)) for name, words in lists.items()}
    best = max(n_stop_words, key=lambda name: n_stop_words[name])
    return best if n_stop_words[best] > _LEAST * counts.total() else ""
