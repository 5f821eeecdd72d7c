"""Our nDCG@10 on SciFact and NFCorpus beside the values of docs/matrix/published.yaml that have a tolerance.

The collections are read from PSE_SHARED (bench/) and go through the command's own stages in a folder that is thrown
away. Vectors are taken from the cache and not made here: `bin/per-source-eval.py --source=beir --corpus-path FOLDER`
makes them. Ends with 1 if a value is missed by more than its tolerance.
"""

import json
import sys
import tempfile
from pathlib import Path

import yaml
from measuring import CHECKOUT, SHARED, SMALL, row

from runner.base.errors import BackendError
from runner.base.places import cache_folder
from runner.base.store import Store
from runner.embed.chunk_corpus import chunk_corpus
from runner.embed.embed_chunks import Embeddable
from runner.embed.local_encoder import encoder_for
from runner.eval_set.corpus import read_external
from runner.eval_set.plan import default_plan_text
from runner.eval_set.version import newest_version
from runner.evening.external import ExternalEvaluation
from runner.tools.matrix import load_published

BM25 = ["bm25 x whole_doc", "bm25-plain x whole_doc"]


def is_kept(encoder: str, folder: Path) -> bool:
    """Return whether the cache holds the vectors of a collection's documents."""
    collection = read_external(folder)
    by_id = {document.doc_id: document for document in collection.documents}
    readings = [chunk.reading(by_id[chunk.doc_id]) for chunk in chunk_corpus(collection.documents, "whole_doc")]
    try:
        return Embeddable(Store(cache_folder()), encoder_for(encoder), readings, "document").outstanding() == (0, 0)
    except BackendError:
        return False


def values_of(folder: Path) -> dict[str, float]:
    """Return nDCG@10 of the cells that can be had without embedding."""
    encoders = [name for name in ("minilm-l6-v2", "mpnet-base-v2") if is_kept(name, folder)]
    with tempfile.TemporaryDirectory() as scratch:
        version = newest_version("beir", Path(scratch))
        cells = [*BM25, *(f"{name} x whole_doc" for name in encoders)]
        plan = yaml.safe_load(default_plan_text(version.source, rehearsal=False)) | {"cells": cells}
        path = version.plan_path(rehearsal=False)
        path.parent.mkdir()
        path.write_text(yaml.safe_dump(plan), encoding="utf-8")
        ExternalEvaluation(version, folder).run()
        results = json.loads((version.record / "results.json").read_bytes())
    return {row["cell"]: row["scores"]["ndcg@10"]["mean"] for row in results["cells"]}


def main() -> int:
    missed = False
    for folder in (SHARED / "bench" / "scifact", SHARED / "bench" / "nfcorpus"):
        values = values_of(folder) if folder.is_dir() else {}
        for published in load_published(CHECKOUT / "docs" / "matrix" / "published.yaml").values:
            if (published.dataset, published.measure) != (folder.name, "ndcg@10") or published.tolerance is None:
                continue
            what = f"nDCG@10 of {published.system} on {folder.name}; {published.source}"
            theirs, wanted = f"{published.value:.5f}", f"within {published.tolerance}"
            if (ours := values.get(published.system)) is None:
                row(what, "not measured", theirs, "", wanted)
                continue
            missed |= abs(ours - published.value) > published.tolerance
            row(what, f"{ours:.5f}", theirs, f"{ours - published.value:+.5f}", wanted)
    return int(missed and not SMALL)  # of the smallest size it is another collection


if __name__ == "__main__":
    sys.exit(main())
