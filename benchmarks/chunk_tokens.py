"""Fixed-token chunking against tiktoken's own encode_ordinary, on the same documents in one process.

Tags are cut out of XML, so the texts are realistic and no reader is timed. Both sides read every document in turn,
in alternating rounds of CPU time; the ratio is the median over rounds of encode time / chunking time.
"""

import re
import statistics
import time
import unicodedata

from measuring import bills_folder, fastest, row, sized

from chunkers.registry import CHUNKERS
from chunkers.tokens import count_tokens, encoding
from runner.base.records import Document


def read() -> list[Document]:
    documents = []
    for path in sorted(bills_folder().rglob("*.xml")):
        text = unicodedata.normalize("NFC", re.sub(r"<[^>]*>", " ", path.read_text(encoding="utf-8", errors="replace")))
        documents.append(Document(re.sub(r"\s", "-", path.stem), text, f"The document {path.stem}", "", "", ""))
    return documents


def main() -> None:
    documents = read()
    n_tokens = sum(count_tokens(document.text) for document in documents)
    encode = encoding().tiktoken.encode_ordinary
    for name in (name for name in CHUNKERS if name.startswith("fixed_token")):
        cut = CHUNKERS[name].cut
        rounds = []
        for _ in range(sized(9, 1)):
            # Both sides in one round, so that a slow moment of the machine hits both.
            peer = fastest(lambda: [encode(document.text) for document in documents], 1, time.process_time)[0]
            ours = fastest(lambda cut=cut: [cut(document) for document in documents], 1, time.process_time)[0]
            rounds.append((peer / ours, ours, peer))
        ratio, ours, peer = (statistics.median(column) for column in zip(*rounds, strict=True))
        what = f"{name} over {len(documents)} bills, tokens/s; tiktoken's encode_ordinary"
        row(what, f"{n_tokens / ours:,.0f}", f"{n_tokens / peer:,.0f}", f"{ratio:.2f}x", "0.8x")


if __name__ == "__main__":
    main()
