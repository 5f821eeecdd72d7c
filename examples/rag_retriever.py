"""Compare the retriever of your RAG system with plain BM25, and with systems that read no question.

Run it with a server of OpenAI's chat API:

    LLM_URL=http://localhost:11434/v1 LLM_MODEL=qwen3 python examples/rag_retriever.py handbook.jsonl questions.jsonl

handbook.jsonl has a line {"id": ..., "text": ...} per document, questions.jsonl a line {"id": ..., "text": ...,
"answer": ...} per question, with the id of the document that answers it. LLM_API_KEY is sent if it is set.
"""

import json
import os
import re
import sys
from pathlib import Path

import httpx

from runner import evaluate

CLIENT = httpx.Client(timeout=120)


def ask(instructions: str, text: str) -> str:
    """What the language model says."""
    key = os.environ.get("LLM_API_KEY", "")
    reply = CLIENT.post(
        f"{os.environ['LLM_URL']}/chat/completions",
        headers={"Authorization": f"Bearer {key}"} if key else {},
        json={
            "model": os.environ["LLM_MODEL"],
            "temperature": 0,
            "messages": [{"role": "system", "content": instructions}, {"role": "user", "content": text}],
        },
    )
    reply.raise_for_status()
    return str(reply.json()["choices"][0]["message"]["content"])


class RagRetriever:
    """Stands for yours: has the model reword the question, then ranks documents by the words they share with it."""

    def __init__(self, documents: dict[str, str]) -> None:
        self.words = {name: set(re.findall(r"\w+", text.lower())) for name, text in documents.items()}

    def __call__(self, question: str) -> list[str]:
        """Ids of documents, best first."""
        reworded = ask("Reword the question in the words of an official handbook. Reply with it alone.", question)
        wanted = set(re.findall(r"\w+", f"{question} {reworded}".lower()))
        return sorted(self.words, key=lambda name: (-len(wanted & self.words[name]), name))[:10]


def main(handbook: str, questions: str) -> None:
    """Print the verdict and the pairwise comparison; write the page."""
    documents, asked = (
        {row["id"]: row for row in map(json.loads, Path(path).read_text(encoding="utf-8").splitlines())}
        for path in (handbook, questions)
    )
    results = evaluate(
        documents,
        asked,
        {name: {row["answer"]: 1} for name, row in asked.items()},
        retrievers={"rag": RagRetriever({name: row["text"] for name, row in documents.items()})},
        name="handbook",
    )
    print(results)
    pair = results.compare("rag", "bm25 x whole_doc").paired
    print(f"rag less bm25: {pair.difference:+.3f}, {pair.verdict} (p {pair.p:.3g})")
    print(results.html("rag.html"))


if __name__ == "__main__":
    main(*sys.argv[1:])
