"""Is a corpus fit to be sampled: what it held, what was left out, and what in it repeats."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from samplers.corpus.parse import Reading

QUANTILES = (0, 10, 50, 90, 100)
N_SHOWN = 10


def readiness(reading: "Reading", clusters: Mapping[str, str]) -> dict[str, Any]:
    """Return the report on a corpus, in JSON's types; `clusters` are those of `near_duplicates` over its documents."""
    documents = reading.cards.values()
    lengths = sorted(document.n_characters for document in documents)
    sizes = Counter(clusters.values())
    # Without what differs from file to file: what stands in parentheses and after commas.
    reasons = [re.split(r" \(|, ", reason, maxsplit=1)[0] for _, reason in reading.quarantined]
    return {
        "files": reading.n_files,
        "files_ignored": _largest_first(reading.ignored),
        "files_empty": reading.n_empty,
        "files_quarantined": len({place for place, _ in reading.quarantined}),
        "quarantined": [list(row) for row in reading.quarantined],
        "quarantine_reasons": _by_count(reasons),
        "swallowing": [[name, reading.cards[name].n_characters, n] for name, n in reading.swallowing.items()],
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
        "near_duplicate_rate": round(sum(n - 1 for n in sizes.values()) / len(documents), 4),
        "near_duplicate_clusters": sum(n > 1 for n in sizes.values()),
        "strata": _by_count(document.stratum for document in documents),
    }


def lines(report: Mapping[str, Any]) -> list[str]:
    """Return the report for a terminal."""
    lengths = ", ".join(f"{name} {n:,}" for name, n in report["length_quantiles"].items())
    holding = [f"{doc}: {n:,} characters" + f", {at} begins in it" * bool(at) for doc, n, at in report["swallowing"]]
    return [
        f"files: {report['files']:,} read, {report['files_empty']:,} of them empty and "
        f"{report['files_quarantined']:,} quarantined",
        *_indented(report["quarantine_reasons"]),
        f"files of other kinds: {sum(report['files_ignored'].values()):,}",
        *_indented(report["files_ignored"]),
        *([f"documents that may hold others: {len(holding):,}", *_shown(holding)] if holding else []),
        f"documents: {report['documents']:,} in {report['families']:,} families, {report['sections']:,} sections, "
        f"{report['characters']:,} characters ({report['coverage']:.1%} of what the files say)",
        *_indented({f"characters left out: {reason}": n for reason, n in report["left_out"].items()}),
        f"documents left out: {report['documents_equal']:,} equal, {report['documents_superseded']:,} superseded",
        *_indented({f"out of scope: {reason}": n for reason, n in report["documents_out_of_scope"].items()}),
        f"length in characters: {lengths}",
        "status: " + ", ".join(f"{status} {n:,}" for status, n in report["statuses"].items()),
        f"near-duplicates: {report['near_duplicate_rate']:.1%} of the documents, "
        f"{report['near_duplicate_clusters']:,} clusters",
        f"strata: {len(report['strata']):,}",
        *_indented(report["strata"]),
    ]


def _by_count(words: Iterable[str]) -> dict[str, int]:
    """Return how often each occurs, the most frequent first, then by name."""
    return _largest_first(Counter(words))


def _largest_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _indented(counts: Mapping[str, int]) -> Sequence[str]:
    return _shown(f"{n:,} {name}" for name, n in counts.items())


def _shown(each: Iterable[str]) -> Sequence[str]:
    rows = [f"  {row}" for row in each]
    return [*rows[:N_SHOWN], f"  and {len(rows) - N_SHOWN} more"] if len(rows) > N_SHOWN else rows
