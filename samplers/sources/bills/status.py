"""BILLSTATUS files, which are no documents but state the policy area of a bill."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lxml import etree

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.formats.safe_xml import local_name, parse, plain_text

SIDECAR = r"(?:^|/)(?:DEV-)?BILLSTATUS-[^/]*\.xml$"
"""The paths of such files; govinfo's trial files begin with "DEV-"."""

N_PARTS = 4
"""Parts of a bill's stratum without policy area."""


def enriched(documents: Sequence[Document], files: Mapping[str, bytes]) -> list[Document]:
    """The documents with the policy areas of their bills, all versions of one bill alike; DocumentError for a file
    that is not what its name says.

    Of several files of one bill the first that states a policy area counts. What a document states itself stays.
    """
    areas: dict[str, str] = {}
    for place, data in sorted(files.items()):
        family, area = _stated(parse(data, place), place)
        if area:
            areas.setdefault(family, area)
    return [in_policy_area(document, areas.get(document.family, "")) for document in documents]


def in_policy_area(document: Document, area: str) -> Document:
    """The document with the policy area behind its stratum; as it was for "" or if it has one."""
    if not area or document.stratum.count("/") >= N_PARTS:
        return document
    return replace(document, stratum=f"{document.stratum}/{area.replace('/', ' ')}")


def _stated(root: etree._Element, place: str) -> tuple[str, str]:
    """The family of the bill, as `reader` names it, and its policy area or ""."""
    bill = next((child for child in root if local_name(child) == "bill"), None)
    if local_name(root) != "billStatus" or bill is None:
        raise DocumentError(place, f"the root element is <{local_name(root)[:30]}>, not <billStatus> with a bill in it")
    facts = {local_name(fact): plain_text(fact) for fact in bill}
    kind = facts.get("billType") or facts.get("type", "")
    number = facts.get("billNumber") or facts.get("number", "")
    return f"{facts.get('congress', '')}-{kind.lower()}-{number}", facts.get("policyArea", "")
