"""Is the retriever of your RAG system better than plain BM25? Judged by a language model, over your own documents.

Run it with a server of OpenAI's chat API:

    LLM_URL=http://localhost:11434/v1 LLM_MODEL=qwen3 python examples/rag_retriever.py handbook.jsonl questions.txt

handbook.jsonl has a line {"id": ..., "text": ...} per document, questions.txt a question a line. LLM_API_KEY is sent if
it is set. Grades are kept in the folder `rag-evaluation`; run again, only what is new is judged.
"""

import json
import os
import re
import sys
from pathlib import Path

import httpx

from runner import evaluate

GRADES = """Grade how well the passage answers the question: 3 it answers it, 2 it answers a part, 1 it is about the
same thing and answers nothing, 0 it is about something else. Reply with the number alone."""


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


def llm_judge(question: str, passage: str) -> int:
    """A grade from 0 to 3; a reply that is no number is an error and never a grade."""
    said = ask(GRADES, f"Question: {question}\n\nPassage: {passage}")
    return int(said.strip())


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
    """Print the verdict and the pairwise comparison; write the page beside the grades."""
    rows = [json.loads(line) for line in Path(handbook).read_text(encoding="utf-8").splitlines()]
    documents = {row["id"]: row["text"] for row in rows}
    asked = Path(questions).read_text(encoding="utf-8").splitlines()
    results = evaluate(
        documents,
        {f"q{number}": question for number, question in enumerate(asked, start=1)},
        judge=llm_judge,
        retrievers={"rag": RagRetriever(documents)},
        name="handbook",
        folder="rag-evaluation",
    )
    print(results)
    pair = results.compare("rag", "bm25 x whole_doc").paired
    print(f"rag less bm25: {pair.difference:+.3f}, {pair.verdict} (p {pair.p:.3g})")
    print(results.html("rag-evaluation/page.html"))


if __name__ == "__main__":
    main(*sys.argv[1:])
