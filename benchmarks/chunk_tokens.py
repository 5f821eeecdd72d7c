"""Fixed-token chunking against tiktoken's own encode_ordinary, on the same documents in one process.

    python benchmarks/chunk_tokens.py [FOLDER OF .xml OR .txt FILES]

Tags are cut out of XML, so the texts are realistic and no reader is timed. Both sides read every document in turn,
in alternating rounds of CPU time; the ratio is the median over rounds of encode time / chunking time. Wanted: 0.8 or
more.
"""

import re
import statistics
import time
import unicodedata
from pathlib import Path

from corpus import bills_folder
from sizes import sized

from chunkers.registry import CHUNKERS
from chunkers.tokens import count_tokens, encoding
from runner.base.records import Document

ROUNDS = sized(9, 1)


def read(folder: Path) -> list[Document]:
    documents = []
    for path in sorted(path for path in folder.rglob("*") if path.suffix in (".xml", ".txt")):
        text = unicodedata.normalize("NFC", re.sub(r"<[^>]*>", " ", path.read_text(encoding="utf-8", errors="replace")))
        documents.append(Document(re.sub(r"\s", "-", path.stem), text, f"The document {path.stem}", "", "", ""))
    return documents


def seconds(work: list[Document], chunk: str) -> float:
    began = time.process_time()
    if chunk:
        for document in work:
            CHUNKERS[chunk].cut(document)
    else:
        encode = encoding().tiktoken.encode_ordinary
        for document in work:
            encode(document.text)
    return time.process_time() - began


def main() -> None:
    documents = read(bills_folder())
    n_tokens = sum(count_tokens(document.text) for document in documents)
    names = [name for name in CHUNKERS if name.startswith("fixed_token")]
    ratios: dict[str, list[float]] = {name: [] for name in names}
    rates = []
    for _ in range(ROUNDS):
        for name in names:
            alone = seconds(documents, "")
            ratios[name].append(alone / seconds(documents, name))
            rates.append(n_tokens / alone)
    print(f"{len(documents)} documents, {n_tokens:,} tokens; encode_ordinary {statistics.median(rates):,.0f} tokens/s")
    for name in names:
        print(f"{name:24} {statistics.median(ratios[name]):.2f}x of tiktoken's encode rate")


if __name__ == "__main__":
    main()
