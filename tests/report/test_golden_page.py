"""One whole page, byte for byte: what its sentences, captions and figures say is held here and asserted nowhere else.

`python -m tests.report.test_golden_page` writes it anew, after a change that TEMPLATE_VERSION announces.
"""

from pathlib import Path

from tests.support.full_results import NAMES, full_receipt, full_results, page

GOLDEN = Path(__file__).parents[1] / "data" / "golden" / "results.html"


def example_page() -> bytes:
    """The page of three cells and four queries, with every section that a version of our own has."""
    found = full_results(n_queries=4, source="demo", names=[*NAMES[:2], "bm25 x whole_doc"])
    return page(found, full_receipt(found))


def test_the_page_of_the_example_is_the_golden_one():
    assert example_page().decode().split("\n") == GOLDEN.read_bytes().decode().split("\n")


if __name__ == "__main__":
    GOLDEN.write_bytes(example_page())
