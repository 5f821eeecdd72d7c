"""Sources, one row each, with all that the tool knows of it before it runs."""

from collections.abc import Mapping
from importlib import import_module

from samplers.source import ImportedDecision, KnownBy, SourceSpec, Unit, query_kinds
from samplers.source_format import SourceFormat

PACKAGED_BASELINE = "minilm-l6-v2 x fixed_token_512_50"
EXTERNAL_BASELINE = "bm25 x whole_doc"
"""What published figures of public collections are compared with."""

_MEASURE = r"((?:H|S)\. ?(?:(?:J|Con)\. ?)?(?:R|Res)?\.? ?\d{1,5})"
"""The number of a bill or resolution at the start of a line."""

_OF_BILLS = query_kinds(
    topic=(5, "every bill that does something about a subject", "grants to towns that replace lead pipes"),
    paraphrase=(4, "a bill known from the news, not by its terms", "stop stores from selling my shopping list"),
    citation=(4, "a bill by number and Congress, or what amends a cited section", "H.R. 9999, 131st Congress"),
    authority=(3, "who would get a power or a duty", "Who would have to approve a dam on tribal land?"),
    amount=(2, "what is authorised, capped or raised", "how much a year for rural bus lines, and until when"),
    deadline=(1, "when something begins, ends or is due", "When would the ban on plastic floats begin?"),
    quote=(1, "a phrase of a preamble", 'which resolution speaks of "the patient craft of peace"'),
)

_ROWS = (
    SourceSpec(
        name="crs_reports",
        trigger_order=1,
        structural_chunker="markdown_header_v1",
        policy="baseline",
        imported=ImportedDecision(
            1,
            "mxbai-large-v1 x fixed_token_512_50",
            0.6911,
            "an earlier ablation over CRS reports, whose artefacts are not in this repository",
        ),
        note="the live baseline is Arctic-L by the later comparison over nine sources (Phase 1)",
        elsewhere="save pages of https://www.congress.gov/crs-product/NUMBER as Markdown with a browser's extension",
        format="samplers.sources.weak:CRS",
        known_by=KnownBy(lines=(r"^\*\*Report No\.:\*\*", r"^\| \*\*CRS Product ")),
        unit=Unit(150_000, r"(?:Report No\.|CRS Product Number): ?([A-Z]{1,3}\d{4,6})"),
        queries=query_kinds(
            topic=(7, "background on a policy question", "options for paying for harbor dredging"),
            paraphrase=(4, "the same as a constituent would ask it", "why can't the state just lower the water bill"),
            comparison=(3, "how proposals or programmes differ", "how the two ferry subsidy bills differ"),
            authority=(3, "what Congress or an agency may do", "Can Congress cut off funds for a signed treaty?"),
            amount=(2, "spending or numbers over time", "spending on forest roads over the last decade"),
            citation=(1, "a report by number or title", "R99999, lighthouse preservation"),
        ),
    ),
    SourceSpec(
        name="federal_register",
        trigger_order=2,
        structural_chunker="section_aware_fr_v1",
        evidence=8_000,
        format="samplers.sources.federal_register.reader",
        known_by=KnownBy(
            roots=("FEDREG", "RULES", "RULE", "PRORULES", "PRORULE", "NOTICES", "NOTICE", "PRESDOCS", "PRESDOCU")
        ),
        unit=Unit(600_000, r"\[FR Doc\. (\w+-\d+) Filed"),
        queries=query_kinds(
            topic=(4, "rules on a subject", "proposed limits on noise from delivery drones"),
            citation=(5, "a docket, a RIN, a part of the CFR that changed", "amendments to 99 CFR part 12"),
            deadline=(4, "when comments are due or a rule takes effect", "When are comments on the eel quota due?"),
            paraphrase=(3, "a rule as those who must obey it say it", "new paperwork for shops that mend hearing aids"),
            authority=(2, "by what power an agency acts", "By which statute are buoy lights limited?"),
            amount=(2, "a fee, a threshold, an estimated burden", "price of a tug inspection from next year"),
        ),
    ),
    SourceSpec(
        name="bills",
        trigger_order=3,
        structural_chunker="section_aware_bills_v1",
        evidence=8_000,
        format="samplers.sources.bills",
        known_by=KnownBy(
            roots=("bill", "resolution", "amendment-doc", "engrossed-amendment", "engrossedAmendment"),
            identifiers=("bill",),
        ),
        unit=Unit(340_000, rf"{_MEASURE}$"),
        queries=_OF_BILLS,
    ),
    SourceSpec(
        name="us_code",
        trigger_order=4,
        structural_chunker="usc_uslm_section_v1",
        citation_heavy=True,
        by_path=True,
        format="samplers.sources.us_code",
        known_by=KnownBy(roots=("uscDoc",), identifiers=("usc",)),
        unit=Unit(220_000, r"§ ?(\d[\w-]*)\. "),
        queries=query_kinds(
            citation=(7, "a section, or what stands at a cited place", "99 U.S.C. 4321(b)(2)"),
            definition=(3, "a term of art in one title", "What counts as a small vessel for harbor fees?"),
            authority=(3, "who holds a power, and its limits", "Who can waive the fee for a grazing permit?"),
            paraphrase=(3, "a rule that a layman has met", "can my boss make me pay for a lost uniform"),
            topic=(2, "the provisions on a subject", "penalties for false weather reports"),
            amount=(1, "a fine, a rate, a threshold", "largest fine for fishing in a closed season"),
            deadline=(1, "a period that the law sets", "How long must a lender keep loan records?"),
        ),
    ),
    SourceSpec(
        name="public_laws",
        trigger_order=5,
        structural_chunker="usc_uslm_section_v1",
        citation_heavy=True,
        by_path=True,
        reuses="us_code",
        format="samplers.sources.public_laws",
        known_by=KnownBy(roots=("pLaw",), identifiers=("pl", "pvtl")),
        unit=Unit(56_000, r"(?:SEC\.|SECTION|Sec\.) (\d[\w-]*)\. "),
        queries=query_kinds(
            citation=(7, "a law by number, or what it changed", "section 12 of Public Law 140-7"),
            topic=(4, "what was enacted on a subject", "disaster aid for orchards enacted after the spring frost"),
            amount=(3, "what was appropriated or authorised", "money given to repair lighthouses, by year"),
            authority=(2, "what an office was directed to do", "Which office was told to map abandoned wells?"),
            deadline=(2, "when a provision took effect or lapses", "When does the pilot for night clinics end?"),
            paraphrase=(2, "an enacted rule in plain words", "the law that stopped surprise ferry charges"),
        ),
    ),
    SourceSpec(
        name="hearing_transcripts",
        trigger_order=6,
        structural_chunker="speaker_turn_v1",
        evidence=7_000,
        format="samplers.sources.hearings.reader",
        known_by=KnownBy(lines=(r"\[(?:House|Senate|Joint) Hearing, \d", r"\[Senate Hearing \d", r"^ *S\. Hrg\. \d")),
        unit=Unit(250_000, r"\[((?:House|Senate|Joint) Hearing, \d+ Congress)\]"),
        queries=query_kinds(
            attribution=(6, "what a witness or member said", "what the pilots' witness said of night work"),
            topic=(5, "hearings on a subject", "testimony on broken elevators in public housing"),
            quote=(3, "a remembered exchange", 'who answered "we simply never counted them"'),
            paraphrase=(3, "an argument without its terms", "people arguing that storm maps are too old"),
            citation=(2, "a hearing by committee, date or title", "Select Committee on Ferries, hearing of 3 May"),
            amount=(1, "a figure that was given in evidence", "How many inspectors did the agency say it lacks?"),
        ),
    ),
    SourceSpec(
        name="congressional_record",
        trigger_order=7,
        structural_chunker="speaker_turn_v1",
        reuses="hearing_transcripts",
        format="samplers.sources.congressional_record.reader",
        known_by=KnownBy(lines=(r"\[Congressional Record (?:Volume|Vol\.)",)),
        unit=Unit(630_000, r"\[(Congressional Record (?:Volume \d+|: [^\]\n]{1,60}))"),
        queries=query_kinds(
            attribution=(5, "who spoke for or against something", "senators who spoke against the lighthouse sale"),
            topic=(5, "a debate or statement on a subject", "floor debate on feeding pupils over the summer"),
            quote=(3, "a remembered line of a speech", 'who said on the floor "a bridge is a promise"'),
            citation=(3, "an amendment, a bill or a day", "debate on amendment 9876 to the ferry bill"),
            paraphrase=(4, "a speech without its terms", "a lawmaker's farewell to a teacher from home"),
        ),
    ),
    SourceSpec(
        name="committee_reports",
        trigger_order=8,
        structural_chunker="section_aware_committee_v1",
        format="samplers.sources.committee_reports.reader",
        known_by=KnownBy(
            lines=(
                r"\[(?:House|Senate|Conference) Report \d|\[(?:House|Senate) (?:Executive|Exec\.) ",
                r"<title>(?:House|Senate|Conference|Executive) Report \d",
            )
        ),
        unit=Unit(1_300_000, r"\[((?:House|Senate|Conference) Report \d+-\d+)\]"),
        queries=query_kinds(
            authority=(5, "what a committee directs an agency to do", "Who is told to report on unused buoys?"),
            topic=(5, "why a bill was reported, its need", "reasons given for moving the seed bank"),
            citation=(4, "a report, or the report on a bill", "committee report on H.R. 9999, 131st Congress"),
            amount=(3, "a recommended sum or a cost", "recommended for tide gauges, against the request"),
            paraphrase=(2, "a direction without its terms", "complaint that an office ignores its mail"),
            quote=(1, "a phrase of the minority", 'the views that call the plan "a raft of paper"'),
        ),
    ),
    SourceSpec(
        name="ecfr_and_cfr",
        trigger_order=9,
        structural_chunker="section_aware_fr_v1",
        by_path=True,
        reuses="federal_register",
        format="samplers.sources.cfr.reader",
        known_by=KnownBy(
            roots=("CFRDOC", "CFRGRANULE", "PART", "ECFR", "DLPSTEXTCLASS", *(f"DIV{n}" for n in range(1, 10))),
            identifiers=("cfr",),
        ),
        unit=Unit(190_000, r"(?:§+ ?|PART (?=\d+—))(\d[\w.-]*)"),
        queries=query_kinds(
            citation=(6, "a section or part", "99 CFR 123.45(a)"),
            definition=(4, "a regulatory term", "What is a hard-to-reach customer for meter readings?"),
            paraphrase=(4, "what one must do, in plain words", "do I have to label honey from two countries"),
            authority=(2, "who decides or grants an exception", "Who can let a plant run without a scrubber?"),
            amount=(2, "a limit or a threshold", "most lead allowed in a toy's paint"),
            deadline=(2, "a time to file, keep or report", "How soon must a spill of milk be reported?"),
        ),
    ),
    SourceSpec(
        name="gao_reports",
        trigger_order=10,
        structural_chunker="recursive_v1",
        policy="baseline",
        predicted_best="fixed_token_512_50",
        note="only the products' own summaries are read, not the bodies of the reports",
        format="samplers.sources.weak:GAO",
        known_by=KnownBy(lines=(r'"gao_id"\s*:',)),
        elsewhere="gao.gov turns programs away. Take product records from https://www.gao.gov/products by hand",
        unit=Unit(600),
        queries=query_kinds(
            topic=(8, "what was audited and found", "audit of spare parts for icebreakers"),
            paraphrase=(5, "a finding in plain words", "a department that cannot say where its laptops are"),
            authority=(3, "who was told to mend what", "Which office should fix the backlog of dam checks?"),
            amount=(2, "a sum or a share that was found", "How much was overpaid to ferry crews?"),
            citation=(2, "a product by number", "GAO-99-12345"),
        ),
    ),
    SourceSpec(
        name="cbo_cost_estimates",
        trigger_order=11,
        structural_chunker="recursive_v1",
        policy="baseline",
        baseline="arctic-l-v2.0 x recursive_v1",
        note="recursive_v1 is its baseline on prior, since no comparison ever held it; no real document was read here",
        format="samplers.sources.weak:CBO",
        known_by=KnownBy(
            # A search for one letter takes a fiftieth of one for both of its cases.
            lines=tuple(rf"{letter}(?i:ongressional Budget Office\s{{1,80}}Cost Estimate)" for letter in "Cc"),
            pdf_names=("(?i)cbo|cost.?estimate",),
        ),
        elsewhere="cbo.gov publishes no listing for programs. Look under https://www.cbo.gov/cost-estimates",
        unit=Unit(0, rf"{_MEASURE}(?:, |$)"),
        queries=query_kinds(
            amount=(7, "what a bill would cost or save", "ten-year cost of free school breakfasts"),
            citation=(5, "the estimate for a bill", "cost estimate for S. 9999, 131st Congress"),
            topic=(4, "estimates on a subject", "estimates of bills that lend to fishing ports"),
            paraphrase=(3, "the same without budget terms", "would the toll holiday make the state poorer"),
            authority=(1, "a mandate and on whom it falls", "Does the well bill put a duty on counties?"),
        ),
    ),
    SourceSpec(
        name="statements_of_administration_policy",
        trigger_order=12,
        structural_chunker="recursive_v1",
        policy="baseline",
        predicted_best="fixed_token_512_50",
        format="samplers.sources.weak:STATEMENTS",
        known_by=KnownBy(
            lines=("STATEMENT OF ADMINISTRATION POLICY",), pdf_names=(r"(?:^|-)\d{4}-\d\d-\d\d_[a-z]+\d",)
        ),
        elsewhere="whitehouse.gov removes them with each administration. Take the PDFs from "
        "https://github.com/unitedstates/statements-of-administration-policy",
        unit=Unit(21_000, rf"{_MEASURE} ?[-–—] "),
        queries=query_kinds(
            topic=(7, "the administration's view of a subject", "White House view of selling public lighthouses"),
            citation=(5, "the statement on a bill", "statement on H.R. 9999, 131st Congress"),
            authority=(3, "whether a veto is threatened", "Would advisers urge a veto of the eel bill?"),
            paraphrase=(4, "an objection in plain words", "why his people say the ferry plan ties their hands"),
            quote=(1, "a phrase of the statement", 'which bill was said to "turn back the tide clock"'),
        ),
    ),
    SourceSpec(
        name="demo",
        structural_chunker="section_aware_bills_v1",
        baseline=PACKAGED_BASELINE,
        reader="bills",
        sample_size=500,
        corpus="eval-sets/demo/corpus",
        elsewhere="its corpus is in the repository, under eval-sets/demo/corpus",
        weakness="Invented bills, so this is no evidence about real ones: a language model had a part in bills and "
        "queries alike. The demo shows how an evaluation works.",
        queries=_OF_BILLS,
    ),
    SourceSpec(
        name="beir",
        structural_chunker="",
        baseline=EXTERNAL_BASELINE,
        policy="external",
        sample_size=1_000_000,
        elsewhere="collections are published as archives; docs/tools.md says where",
        queries=(),
    ),
)

SOURCES: dict[str, SourceSpec] = {row.name: row for row in _ROWS}

DOCUMENTS = SourceSpec(
    name="documents",
    structural_chunker="by_heading_v1",
    baseline=PACKAGED_BASELINE,
    format="samplers.sources.documents",
    elsewhere="give a folder, a ZIP, a file of JSON lines or an SQLite table of your own, with --documents",
    queries=query_kinds(
        topic=(6, "everything on a subject", "rules on keeping bees in towns"),
        paraphrase=(5, "the same without the words that the documents use", "can my neighbour's hive be taken away"),
        citation=(3, "a document or section by number or title", "section 12 of the bee ordinance"),
        authority=(2, "who may, must or must not do something", "Who inspects hives on rented roofs?"),
        definition=(2, "what a term means", "What counts as a swarm?"),
        amount=(1, "how much", "fine for an unmarked hive"),
        deadline=(1, "by when, or for how long", "How soon must a lost swarm be reported?"),
    ),
)
"""What a source of one's own is made from: its name, its baseline and its fields stand in its plan."""

SAMPLERS: Mapping[str, str] = {row.name: row.format for row in _ROWS if row.format}
"""The sources that have a reader, with the module of its `FORMAT` or of another row, `module:ROW`."""


READERS = (*SAMPLERS, DOCUMENTS.name)
"""The names of all that `source_format` knows."""


def source_format(name: str) -> SourceFormat:
    """Return how the files of a source that has a reader of its own, or anybody's, become documents."""
    module, _, row = (DOCUMENTS.format if name == DOCUMENTS.name else SAMPLERS[name]).partition(":")
    # A reader is imported on use: it takes lxml along.
    source_row: SourceFormat = getattr(import_module(module), row or "FORMAT")
    return source_row
