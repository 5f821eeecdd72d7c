"""The table of docs/sources.md: what the readers make of real files.

`python -m tests.support.corpora_table SHARED`, the folder that holds the parts of the corpora.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from chunkers.registry import chunker
from runner.base.places import CHECKOUT
from runner.eval_set.catalog import SOURCES
from samplers.corpus.parse import read_corpus
from tests.support.corpora import whole_corpora

PAGE = CHECKOUT / "docs" / "sources.md"
START, END = "<!-- corpora -->\n", "<!-- end of corpora -->"
FOLDERS = sorted((spec.name for spec in SOURCES.values() if spec.trigger_order), key=lambda name: name != "bills")
"""The sources with real files, which lie in a folder of that name."""

HEAD = """\
| folder | files | documents | sections | quarantined | characters kept | left out | longest chunk, tokens |
|---|---|---|---|---|---|---|---|
"""


def rows(corpora: Path) -> Iterator[str]:
    """Yield one row a folder that there is, and the sum."""
    totals = [0, 0, 0, 0]
    for source in FOLDERS:
        if not (corpora / source).is_dir():
            continue
        reading = read_corpus(corpora / source, source)
        sections = sum(len(document.sections) for document in reading.documents)
        counts = (reading.n_files, len(reading.documents), sections, len(reading.quarantined))
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        cut = chunker(SOURCES[source].structural_chunker)
        longest = max(chunk.n_tokens for document in reading.documents for chunk in cut(document))
        largest = sorted(reading.left_out.items(), key=lambda item: (-item[1], item[0]))[:3]
        total = reading.n_characters + sum(reading.left_out.values())
        reasons = ", ".join(f"{reason} {n / total:.1%}" for reason, n in largest if n / total >= 0.0005)
        figures = (*(f"{count:,}" for count in counts), f"{reading.coverage:.1%}", reasons or "nothing", f"{longest:,}")
        yield f"| {source} | {' | '.join(figures)} |\n"
    share = totals[3] / totals[0]
    yield f"| all | {' | '.join(f'{total:,}' for total in totals)} ({share:.1%}) | | | |\n"


def with_table(text: str, corpora: Path) -> str:
    """Return the page with its table made anew."""
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    return before + START + HEAD + "".join(rows(corpora)) + END + after


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        corpora = whole_corpora(Path(sys.argv[1]), Path(scratch))
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), corpora), encoding="utf-8")
