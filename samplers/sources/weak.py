"""Sources of weak structure: rows of the reader of any documents, one for each."""

from samplers.formats.documents import Layout, reader
from samplers.formats.stated import DATE, MEASURE_TYPE
from samplers.source_format import Card, SourceFormat

_NUMBER = r"(?P<number>[A-Z]{1,4}\d{4,6}|\d{2}-\d{2,4}[A-Z]{0,2})"
_MEASURE = rf"(?P<measure>(?:{MEASURE_TYPE}) ?\d{{1,5}})\b"

_CRS = Layout(
    # The head of a saved page ends with the date and the number of the product, at the latest.
    starts=r"^(?:Product Type|Report No\.|Version|Topics|Publication Date|Author\(s\)|CRS Product \w+):"
    r"|^Source: https:|^Listen\b|[A-Z][a-z]{2,8} \d{1,2}, \d{4}\s{3,}\([A-Z0-9-]{3,12}\)$",
    ends=r"^\s*Disclaimer:\s*$",
    drops=r"^(?:Jump to Main Text|Download PDF|PDF Version|Hide Overview|Show Overview|Citation\b.*Subscribe)"
    r"|^Author (?:Contact )?Information$|^Created with Highcharts \d|^Figure is interactive in the HTML",
    contents="Contents|Figures|Tables|Appendix(?:es)?",
    titles=True,
    facts=(
        rf"^(?:Report No\.|CRS Product Number):\s*{_NUMBER}$",
        r"^Version: (?P<version>\d{1,3})$",
        r" - Version: (?P<version>\d{1,3})\)",
        # What the page leaves open the file's name fills.
        rf"^file: (?:.*/)?{_NUMBER}(?:v(?P<version>\d{{1,3}}))?(?=[-_.])",
        r"^(?:CRS )?Product Type:\s*(?P<kind>\w[\w ]*)",
        r"^Topics:\s*(?P<topic>[^;\n]+)",
    ),
    doc_id=("{number}v{version}", "{number}"),
    title=("CRS {number}: {heading}", "CRS {number}"),
    stratum="{kind}/{topic}/{length}",
    family=("{number}",),
    url=("https://www.congress.gov/crs-product/{number}",),
)

# GAO's own broad topics: a record names one of them among some thirty subject terms, in no order.
_TOPICS = (
    "Agriculture and Food|Auditing and Financial Management|Budget and Spending|Business Regulation and Consumer "
    "Protection|Business Regulation|Economic Development|Education|Employment|Energy|Equal Opportunity|Financial "
    "Markets and Institutions|Government Operations|Health Care|Homeland Security|Housing|Human Capital|Information "
    "Management|Information Security|Information Technology|International Affairs|Justice and Law Enforcement|National "
    "Defense|Natural Resources and Environment|Retirement Security|Science and Technology|Space|Tax Policy and "
    "Administration|Telecommunications|Transportation|Veterans|Worker and Family Assistance"
)

_GAO = Layout(
    text_field="summary",
    facts=(
        r"^gao_id: (?P<number>[A-Za-z0-9]+(?:[-.][A-Za-z0-9]+)*)$",
        # Yearly products share an id, and only their pages have numbers: B-158766, b-158766-16.
        r"^url: https://www\.gao\.gov/products/b-\d+(?P<yearly>-\d+)$",
        r"^url: (?P<page>https://www\.gao\.gov/products/[\w.-]+)$",
        r"^published: (?P<year>(?:19|20)\d\d)-",
        rf"^topics: (?:.*; )?(?P<topic>{_TOPICS})(?:;|$)",
    ),
    doc_id=("{number}{yearly}", "{number}"),
    title=("{number}: {title}", "{number}"),
    stratum="{year}/{topic}",
    url=("{page}", "https://www.gao.gov/products/{number}"),
    short=400,
)

_CBO = Layout(
    drops=r"(?i)^(?:(?:congressional budget office|u\.s\. congress|cost estimate|washington, d\.?c\.?(?: 20515)?)\s*)+$"
    r"|^.{0,60}\bPage \d{1,4}$|^(?:See also CBO[’']s |Detailed estimate begins on )"
    r"|^www\.cbo\.gov/publication/\d+$|^[-_=. ]{4,}$",
    titles=True,
    needs=r"(?i:Congressional Budget Office)|\bCBO\b",
    facts=(
        rf"^{_MEASURE}(?:, | |$)(?P<subject>(?!would|is |are ).*)",
        rf"^(?P<day>{DATE})$",
        r"\b(?:ordered reported|reported|introduced|passed) by the (?P<chamber>House|Senate)\b",
        r"\bPublication(?: (?:No\.|Number))?:? (?P<number>[0-9]{4,6})\b",
    ),
    doc_id=("CBO-{number}", "CBO-{place}"),
    title=("CBO cost estimate: {measure}, {subject}", "CBO cost estimate: {measure}", "CBO cost estimate: {stem}"),
    stratum="{chamber}/{length}",
    url=("https://www.cbo.gov/publication/{number}",),
)

_STATEMENTS = Layout(
    drops=r"^(?:EXECUTIVE OFFICE ?OF THE PRESIDENT|OFFICE OF MANAGEMENT AND BUDGET|W ?ASHINGTON, D\. ?C\. 20503|"
    r"STATEMENT OF ?ADMINISTRATION POLICY)$|^[* ]+$",
    titles=True,
    needs=rf"STATEMENT OF ?ADMINISTRATION POLICY|^(?:{MEASURE_TYPE}) ?\d{{1,5}} ?[-–—]",
    facts=(
        # The archive's names have president, Congress, day and measure.
        r"^file: .*\b(?P<president>\d\d-[A-Z][a-z]+)[-/](?P<congress>\d{2,3})[-/](?P<day>[\d-]{10})_(?P<bill>\w+)\.",
        rf"^(?:[\w ]{{1,40}} to )?(?P<subject>(?:{MEASURE_TYPE}) ?\d{{1,5}} ?[-–—].*)$",
        # A threatened veto outweighs what is supported or opposed in the same statement.
        r"(?P<position>\bveto\b)",
        r"\bAdministration (?:also |therefore |fully )?(?:strongly )?(?P<position>supports|opposes) ",
    ),
    doc_id=("SAP-{congress}-{day}-{bill}", "SAP-{place}"),
    title=("Statement of Administration Policy ({day}): {subject}", "Statement of Administration Policy: {stem}"),
    stratum="{president}/{position}",
)


def _version(document: Card) -> tuple[object, ...]:
    return (int(document.doc_id.rpartition("v")[2]) if document.doc_id != document.family else 0,)


CRS = SourceFormat(reader(_CRS), suffixes=(".md",), newest=_version)
GAO = SourceFormat(reader(_GAO), suffixes=(".json",))
CBO = SourceFormat(reader(_CBO), suffixes=(".pdf", ".txt"))
STATEMENTS = SourceFormat(reader(_STATEMENTS), suffixes=(".pdf",))
