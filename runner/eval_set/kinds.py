"""The kinds of challenger: what a cell changes of its baseline, which is what other sources' results can speak of."""

from runner.base.records import IMPORTED, WITHOUT_VECTORS, BM25Cell, HybridCell, parse_cell
from runner.eval_set import catalog
from runner.eval_set.shapes.plan import Kind

_WINDOWS = ("fixed_token", "recursive", "whole_doc")
"""How chunkers begin that cut without regard to a document's structure."""


def kind_of(name: str, baseline: str) -> Kind:
    """Return what a cell changes of the baseline: the chunker alone, how vectors are kept, or what retrieves.

    A cell that changes what retrieves is of its retriever's kind whatever its chunker. What another system returned
    counts as another encoder's.

    >>> kind_of("rrf(bm25,minilm-l6-v2) x speaker_turn_v1", "minilm-l6-v2 x fixed_token_512_50")
    'hybrid'
    """
    if name.startswith(f"{IMPORTED}:"):
        return "other encoder"
    cell = parse_cell(name)
    (retriever, _, chunker), (own_retriever, _, own_chunker) = (each.rpartition(" x ") for each in (name, baseline))
    if retriever == own_retriever:
        return _kind_of_chunker(chunker)
    if isinstance(cell, BM25Cell):
        return "BM25"
    if isinstance(cell, WITHOUT_VECTORS):
        return "re-rank"
    if isinstance(cell, HybridCell):
        return "re-rank" if cell.method == "rerank" else "hybrid"
    if cell.variant and cell.encoder == own_retriever:
        return "quantised" if chunker == own_chunker else _kind_of_chunker(chunker)
    row = catalog.ENCODERS.get(cell.encoder)
    # A static encoder has no layers, and so no limit to what it reads.
    return "static" if row is not None and not row.max_tokens else "other encoder"


def _kind_of_chunker(chunker: str) -> Kind:
    from chunkers.registry import uncut  # it brings numpy, which who only lists versions does without

    name = chunker.removesuffix("-bare")
    if "path" in name.split("_"):
        return "path"
    if name.startswith(_WINDOWS):
        return "window"
    return "structural" if uncut(name) == name else "structural cut"
