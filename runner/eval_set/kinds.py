"""The kinds of challenger: what a cell changes of its baseline, which is what other sources' results can speak of."""

from collections.abc import Collection

from runner.base.errors import InputError
from runner.base.records import IMPORTED, WITHOUT_VECTORS, BM25Cell, DenseCell, HybridCell, parse_cell
from runner.eval_set import catalog
from runner.eval_set.shapes.plan import Kind

_WINDOWS = ("fixed_token", "recursive", "whole_doc")
"""How chunkers begin that cut without regard to a document's structure."""


COPIES = ("int8", "bit")
"""Ways to store vectors whose cell is a near-copy of the one that keeps them whole."""


def near_copies(cells: Collection[str]) -> dict[str, str]:
    """Return of each cell that stores as int8 codes or bits what another of the cells keeps whole: that other one.

    A near-copy is not tested for a gain: it is asked what it loses.

    >>> near_copies(["a x c", "a@int8 x c", "a@256 x c", "b@bit x c"])
    {'a@int8 x c': 'a x c'}
    """
    whole = {}
    for name in cells:
        try:
            cell = parse_cell(name)
        except InputError:  # what another system returned
            continue
        if isinstance(cell, DenseCell) and cell.variant in COPIES:
            whole[name] = str(DenseCell(cell.encoder, cell.chunker))
    return {name: of for name, of in whole.items() if of in cells}


def is_of_vectors(name: str) -> bool:
    """Return whether a cell ranks by vectors alone, of an encoder with layers; False for what is no cell."""
    try:
        cell = parse_cell(name)
    except InputError:
        return False
    return isinstance(cell, DenseCell) and not _is_static(cell.encoder)


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
        kinds: dict[str, Kind] = {"rerank": "re-rank", "rrf": "hybrid", "sum": "sum"}
        return kinds[cell.method]
    if cell.variant and cell.encoder == own_retriever:
        return "quantised" if chunker == own_chunker else _kind_of_chunker(chunker)
    return "static" if _is_static(cell.encoder) else "other encoder"


def _is_static(encoder: str) -> bool:
    row = catalog.ENCODERS.get(encoder)
    # It has no layers, and so no limit to what it reads.
    return row is not None and not row.max_tokens


def _kind_of_chunker(chunker: str) -> Kind:
    from chunkers.registry import uncut  # it brings numpy, which who only lists versions does without

    name = chunker.removesuffix("-bare")
    if "path" in name.split("_"):
        return "path"
    if name.startswith(_WINDOWS):
        return "window"
    return "structural" if uncut(name) == name else "structural cut"
