"""Time of reading bills, against a bare lxml parse of the same bytes in the same process.

python benchmarks/read_bills.py [FOLDER]
"""

import time
from collections.abc import Callable

from corpus import bills_folder
from lxml import etree

from samplers.sample_bills import read_bill

ROUNDS = 5


def best_seconds(work: Callable[[bytes, str], object], files: list[tuple[bytes, str]]) -> float:
    """The fastest of ROUNDS passes over all files."""
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for data, name in files:
            work(data, name)
        seconds.append(time.perf_counter() - begin)
    return min(seconds)


def parse(data: bytes, _name: str) -> object:
    return etree.fromstring(data, etree.XMLParser(load_dtd=False, no_network=True, resolve_entities=False))


def main() -> None:
    files = [(path.read_bytes(), path.name) for path in sorted(bills_folder().rglob("*.xml"))]
    megabytes = sum(len(data) for data, _ in files) / 1e6
    bare, full = best_seconds(parse, files), best_seconds(read_bill, files)
    print(f"{len(files)} files, {megabytes:.1f} MB: lxml parse {bare:.3f} s, read_bill {full:.3f} s")
    print(f"read_bill / lxml parse: {full / bare:.1f}x ({megabytes / full:.1f} MB/s)")


if __name__ == "__main__":
    main()
