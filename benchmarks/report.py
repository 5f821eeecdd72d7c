"""The results page at the sizes that it is held to: seconds to make it, against json.dumps of the same results.

Results are invented (tests/support/full_results.py). json.dumps writes the same figures without a page around them.
"""

import json
import sys

from measuring import CHECKOUT, fastest, row, sized

from runner.base.canonical import json_bytes
from runner.report.results_page import page

sys.path.insert(0, str(CHECKOUT))  # the results belong to the tests

from tests.support.full_results import big_scored, full_receipt


def main() -> None:
    for queries, cells, depth in sized(((25, 10, 30), (200, 20, 10)), ((4, 3, 5),)):
        found, lists = big_scored(queries, cells, depth)
        receipt, written = full_receipt(found), [json_bytes(each.model_dump()) for each in (found, lists)]
        own, made = fastest(lambda w=written, r=receipt: page(*w, r), sized(5, 1))
        peer, _ = fastest(lambda a=found, b=lists: json.dumps([a.model_dump(), b.model_dump()]), sized(5, 1))
        what = (
            f"page of {queries} queries x {cells} cells x depth {depth} ({len(made) / 1e6:.2f} MB), seconds; json.dumps"
        )
        row(what, f"{own:.2f}", f"{peer:.2f}", f"{own / peer:.1f} times", "1 s")


if __name__ == "__main__":
    main()
