"""Is a corpus fit to be sampled: what it held, what was left out, and what in it repeats."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from runner.base.progress import watched

if TYPE_CHECKING:
    from samplers.corpus.parse import Reading

BOILERPLATE_SHARE = 0.05
BOILERPLATE_DOCUMENTS = 5
"""A line is boilerplate if it occurs in more than this share of the documents, and in this many at least."""

COUNTS = 1 << 22
"""Counts that lines share while boilerplate is looked for."""

QUANTILES = (0, 10, 50, 90, 100)
N_LARGEST = 5
N_SHOWN = 10


def readiness(reading: "Reading", clusters: Mapping[str, str]) -> dict[str, Any]:
    """Return the report on a corpus, in JSON's types; `clusters` are those of `near_duplicates` over its documents."""
    from samplers.corpus.near_duplicates import members

    documents = reading.cards.values()
    lengths = sorted(document.n_characters for document in documents)
    groups = members(clusters)
    n_repeated = sum(len(group) - 1 for group in groups)
    return {
        "files": reading.n_files,
        "files_ignored": _largest_first(reading.ignored),
        "files_empty": reading.n_empty,
        "files_quarantined": len({place for place, _ in reading.quarantined}),
        "quarantined": [list(row) for row in reading.quarantined],
        # Without what differs from file to file: what stands in parentheses and after commas.
        "quarantine_reasons": _by_count(
            re.split(r" \(|, ", reason, maxsplit=1)[0] for _, reason in reading.quarantined
        ),
        "contradictions": [list(row) for row in reading.contradictions],
        "swallowing": [list(row) for row in reading.swallowing],
        "documents": len(documents),
        "documents_equal": reading.n_duplicates,
        "documents_superseded": reading.n_superseded,
        "documents_out_of_scope": _largest_first(reading.skipped),
        "sections": sum(document.n_sections for document in documents),
        "families": len({document.family for document in documents}),
        "characters": sum(lengths),
        "coverage": round(reading.coverage, 4),
        "left_out": _largest_first(reading.left_out),
        "length_quantiles": {f"p{q}": lengths[q * (len(lengths) - 1) // 100] for q in QUANTILES},
        "statuses": _by_count(document.status or "live" for document in documents),
        "boilerplate_share": round(boilerplate_share(reading.texts), 4),
        "near_duplicate_rate": round(n_repeated / len(documents), 4),
        "near_duplicate_clusters": len(groups),
        "largest_clusters": [list(group) for group in groups[:N_LARGEST]],
        "strata": _by_count(document.stratum for document in documents),
    }


def boilerplate_share(texts: Mapping[str, str]) -> float:
    """Return the share of the characters in lines that many texts have, white space at their ends not counted."""
    import numpy as np

    # In a small corpus a twentieth is less than one document.
    least = max(BOILERPLATE_DOCUMENTS, int(BOILERPLATE_SHARE * len(texts)) + 1)
    # The distinct lines of a corpus are nearly as large as the corpus. So many lines first share one count of texts,
    # which is at least that of each of them, and only those with a high one are then counted by themselves.
    shared = np.zeros(COUNTS, np.uint32)
    for text in watched(texts.values(), len(texts), "looking for boilerplate in", "documents"):
        shared[[hash(line) % COUNTS for line in _filled_lines(text)]] += 1
    total = 0
    n_texts: Counter[int] = Counter()
    n_characters: Counter[int] = Counter()
    for text in watched(texts.values(), len(texts), "counting boilerplate in", "documents"):
        lines_of_text = Counter(_filled_lines(text))
        total += sum(len(line) * n for line, n in lines_of_text.items())
        for line, n in lines_of_text.items():
            if shared[(key := hash(line)) % COUNTS] >= least:
                n_texts[key] += 1
                n_characters[key] += len(line) * n
    return sum(n_characters[key] for key, n in n_texts.items() if n >= least) / total


def lines(report: Mapping[str, Any]) -> list[str]:
    """Return the report for a terminal."""
    contradictions, swallowing = report["contradictions"], report["swallowing"]
    lengths = ", ".join(f"{name} {n:,}" for name, n in report["length_quantiles"].items())
    return [
        f"files: {report['files']:,} read, {report['files_empty']:,} of them empty and "
        f"{report['files_quarantined']:,} quarantined",
        *_indented(report["quarantine_reasons"]),
        f"files of other kinds: {sum(report['files_ignored'].values()):,}",
        *_indented(report["files_ignored"]),
        *([f"contradictions, each decided as said: {len(contradictions):,}"] if contradictions else []),
        *_shown([f"{place}: {sentence}" for place, sentence in contradictions]),
        *(
            [f"documents that may hold others, by length or by what begins in them: {len(swallowing):,}"]
            if swallowing
            else []
        ),
        *_shown(
            [
                f"{doc_id}: {n:,} characters" + (f", {other} begins in it" if other else "")
                for doc_id, n, other in swallowing
            ]
        ),
        f"documents: {report['documents']:,} in {report['families']:,} families, {report['sections']:,} sections, "
        f"{report['characters']:,} characters ({report['coverage']:.1%} of what the files say)",
        *_indented({f"characters left out: {reason}": n for reason, n in report["left_out"].items()}),
        f"documents left out: {report['documents_equal']:,} equal, {report['documents_superseded']:,} superseded",
        *_indented({f"out of scope: {reason}": n for reason, n in report["documents_out_of_scope"].items()}),
        f"length in characters: {lengths}",
        "status: " + ", ".join(f"{status} {n:,}" for status, n in report["statuses"].items()),
        f"boilerplate: {report['boilerplate_share']:.1%} of the characters, in lines that many documents have",
        f"near-duplicates: {report['near_duplicate_rate']:.1%} of the documents, "
        f"{report['near_duplicate_clusters']:,} clusters",
        *(f"  {len(ids)}: {', '.join(ids[:3])}{', ...' if len(ids) > 3 else ''}" for ids in report["largest_clusters"]),
        f"strata: {len(report['strata']):,}",
        *_indented(report["strata"]),
    ]


def _filled_lines(text: str) -> Iterator[str]:
    return filter(None, map(str.strip, text.split("\n")))


def _by_count(words: Iterable[str]) -> dict[str, int]:
    """Return how often each occurs, the most frequent first, then by name."""
    return _largest_first(Counter(words))


def _largest_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _indented(counts: Mapping[str, int]) -> list[str]:
    return _shown([f"{n:,} {name}" for name, n in counts.items()])


def _shown(rows: Sequence[str]) -> list[str]:
    more = [f"  and {len(rows) - N_SHOWN} more"] if len(rows) > N_SHOWN else []
    return [*(f"  {row}" for row in rows[:N_SHOWN]), *more]
