"""What people ask of each source: the kinds of query, how often each comes, and an example of its shape.

The weights are an author's reading of who uses a source and how, not counts of a query log; a set that follows them is
at least not one kind of question asked 25 times. The examples are of no real document.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WANTED_HAND = 8
WANTED_GENERATED = 17
"""Of 25: spec, task t3, brought up to criterion 1."""

KINDS: Mapping[str, str] = {
    "citation": "names what it looks for: a number, a section, a short title, a docket",
    "quote": "a half-remembered phrase in quotation marks, to find where it stands",
    "attribution": "who said, asked or promised something, with the person or office named",
    "topic": "a subject as somebody who works on it would put it",
    "paraphrase": "the same in a layman's words, without the terms that the document uses",
    "authority": "who may, must or must not do something, and by whose leave",
    "definition": "what a term means, or who and what counts as something",
    "deadline": "by when, from when, for how long",
    "amount": "how much: money, a rate, a limit, a number of people",
    "comparison": "how two things, versions or years differ",
}
"""The known kinds and what each is; another kind is allowed and reported."""

LITERAL_KINDS = frozenset({"citation", "quote", "attribution"})
"""Kinds whose askers know words of the document. All others are written without its distinctive words."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A kind of query as one source gets it: `weight` of 20, what its asker wants, and an example."""

    kind: str
    weight: int
    wanted: str
    example: str


_BILLS = (
    Shape("topic", 5, "every bill that does something about a subject", "grants to towns that replace lead pipes"),
    Shape("paraphrase", 4, "a bill known from the news, not by its terms", "stop stores from selling my shopping list"),
    Shape("citation", 4, "a bill by number and Congress, or what amends a cited section", "H.R. 9999, 131st Congress"),
    Shape("authority", 3, "who would get a power or a duty", "Who would have to approve a dam on tribal land?"),
    Shape("amount", 2, "what is authorised, capped or raised", "how much a year for rural bus lines, and until when"),
    Shape("deadline", 1, "when something begins, ends or is due", "When would the ban on plastic floats begin?"),
    Shape("quote", 1, "a phrase of a preamble", 'which resolution speaks of "the patient craft of peace"'),
)

SHAPES: Mapping[str, Sequence[Shape]] = {
    "bills": _BILLS,
    "demo": _BILLS,
    "us_code": (
        Shape("citation", 7, "a section, or what stands at a cited place", "99 U.S.C. 4321(b)(2)"),
        Shape("definition", 3, "a term of art in one title", "What counts as a small vessel for harbor fees?"),
        Shape("authority", 3, "who holds a power, and its limits", "Who can waive the fee for a grazing permit?"),
        Shape("paraphrase", 3, "a rule that a layman has met", "can my boss make me pay for a lost uniform"),
        Shape("topic", 2, "the provisions on a subject", "penalties for false weather reports"),
        Shape("amount", 1, "a fine, a rate, a threshold", "largest fine for fishing in a closed season"),
        Shape("deadline", 1, "a period that the law sets", "How long must a lender keep loan records?"),
    ),
    "public_laws": (
        Shape("citation", 7, "a law by number, or what it changed", "section 12 of Public Law 140-7"),
        Shape("topic", 4, "what was enacted on a subject", "disaster aid for orchards enacted after the spring frost"),
        Shape("amount", 3, "what was appropriated or authorised", "money given to repair lighthouses, by year"),
        Shape("authority", 2, "what an office was directed to do", "Which office was told to map abandoned wells?"),
        Shape("deadline", 2, "when a provision took effect or lapses", "When does the pilot for night clinics end?"),
        Shape("paraphrase", 2, "an enacted rule in plain words", "the law that stopped surprise ferry charges"),
    ),
    "federal_register": (
        Shape("topic", 4, "rules on a subject", "proposed limits on noise from delivery drones"),
        Shape("citation", 5, "a docket, a RIN, a part of the CFR that changed", "amendments to 99 CFR part 12"),
        Shape("deadline", 4, "when comments are due or a rule takes effect", "When are comments on the eel quota due?"),
        Shape(
            "paraphrase", 3, "a rule as those who must obey it say it", "new paperwork for shops that mend hearing aids"
        ),
        Shape("authority", 2, "by what power an agency acts", "By which statute are buoy lights limited?"),
        Shape(
            "amount",
            2,
            "a fee, a threshold, an estimated burden",
            "price of a tug inspection from next year",
        ),
    ),
    "ecfr_and_cfr": (
        Shape("citation", 6, "a section or part", "99 CFR 123.45(a)"),
        Shape("definition", 4, "a regulatory term", "What is a hard-to-reach customer for meter readings?"),
        Shape("paraphrase", 4, "what one must do, in plain words", "do I have to label honey from two countries"),
        Shape("authority", 2, "who decides or grants an exception", "Who can let a plant run without a scrubber?"),
        Shape("amount", 2, "a limit or a threshold", "most lead allowed in a toy's paint"),
        Shape("deadline", 2, "a time to file, keep or report", "How soon must a spill of milk be reported?"),
    ),
    "hearing_transcripts": (
        Shape("attribution", 6, "what a witness or member said", "what the pilots' witness said of night work"),
        Shape("topic", 5, "hearings on a subject", "testimony on broken elevators in public housing"),
        Shape("quote", 3, "a remembered exchange", 'who answered "we simply never counted them"'),
        Shape("paraphrase", 3, "an argument without its terms", "people arguing that storm maps are too old"),
        Shape("citation", 2, "a hearing by committee, date or title", "Select Committee on Ferries, hearing of 3 May"),
        Shape("amount", 1, "a figure that was given in evidence", "How many inspectors did the agency say it lacks?"),
    ),
    "congressional_record": (
        Shape("attribution", 5, "who spoke for or against something", "senators who spoke against the lighthouse sale"),
        Shape("topic", 5, "a debate or statement on a subject", "floor debate on feeding pupils over the summer"),
        Shape("quote", 3, "a remembered line of a speech", 'who said on the floor "a bridge is a promise"'),
        Shape("citation", 3, "an amendment, a bill or a day", "debate on amendment 9876 to the ferry bill"),
        Shape("paraphrase", 4, "a speech without its terms", "a lawmaker's farewell to a teacher from home"),
    ),
    "committee_reports": (
        Shape("authority", 5, "what a committee directs an agency to do", "Who is told to report on unused buoys?"),
        Shape("topic", 5, "why a bill was reported, its need", "reasons given for moving the seed bank"),
        Shape("citation", 4, "a report, or the report on a bill", "committee report on H.R. 9999, 131st Congress"),
        Shape("amount", 3, "a recommended sum or a cost", "recommended for tide gauges, against the request"),
        Shape("paraphrase", 2, "a direction without its terms", "complaint that an office ignores its mail"),
        Shape("quote", 1, "a phrase of the minority", 'the views that call the plan "a raft of paper"'),
    ),
    "crs_reports": (
        Shape("topic", 7, "background on a policy question", "options for paying for harbor dredging"),
        Shape(
            "paraphrase", 4, "the same as a constituent would ask it", "why can't the state just lower the water bill"
        ),
        Shape("comparison", 3, "how proposals or programmes differ", "how the two ferry subsidy bills differ"),
        Shape("authority", 3, "what Congress or an agency may do", "Can Congress cut off funds for a signed treaty?"),
        Shape("amount", 2, "spending or numbers over time", "spending on forest roads over the last decade"),
        Shape("citation", 1, "a report by number or title", "R99999, lighthouse preservation"),
    ),
    "gao_reports": (
        Shape("topic", 8, "what was audited and found", "audit of spare parts for icebreakers"),
        Shape("paraphrase", 5, "a finding in plain words", "a department that cannot say where its laptops are"),
        Shape("authority", 3, "who was told to mend what", "Which office should fix the backlog of dam checks?"),
        Shape("amount", 2, "a sum or a share that was found", "How much was overpaid to ferry crews?"),
        Shape("citation", 2, "a product by number", "GAO-99-12345"),
    ),
    "cbo_cost_estimates": (
        Shape("amount", 7, "what a bill would cost or save", "ten-year cost of free school breakfasts"),
        Shape("citation", 5, "the estimate for a bill", "cost estimate for S. 9999, 131st Congress"),
        Shape("topic", 4, "estimates on a subject", "estimates of bills that lend to fishing ports"),
        Shape("paraphrase", 3, "the same without budget terms", "would the toll holiday make the state poorer"),
        Shape("authority", 1, "a mandate and on whom it falls", "Does the well bill put a duty on counties?"),
    ),
    "statements_of_administration_policy": (
        Shape("topic", 7, "the administration's view of a subject", "White House view of selling public lighthouses"),
        Shape("citation", 5, "the statement on a bill", "statement on H.R. 9999, 131st Congress"),
        Shape(
            "authority",
            3,
            "whether a veto is threatened",
            "Would advisers urge a veto of the eel bill?",
        ),
        Shape("paraphrase", 4, "an objection in plain words", "why his people say the ferry plan ties their hands"),
        Shape("quote", 1, "a phrase of the statement", 'which bill was said to "turn back the tide clock"'),
    ),
    "beir": (),
}
"""The shapes of every source of the catalog; a public collection brings its own queries and has none."""


def expected(source: str, n_queries: int) -> dict[str, float]:
    """How many of `n_queries` would be of each kind, were they spread as the source's weights say."""
    shapes = SHAPES[source]
    total = sum(shape.weight for shape in shapes)
    return {shape.kind: n_queries * shape.weight / total for shape in shapes}


def whole_shares(source: str, n_queries: int) -> dict[str, int]:
    """`expected` in whole queries that sum to `n_queries`: those with the largest remainders are rounded up."""
    wanted = expected(source, n_queries)
    shares = {kind: int(share) for kind, share in wanted.items()}
    lacking = n_queries - sum(shares.values())
    for kind in sorted(wanted, key=lambda kind: shares[kind] - wanted[kind])[:lacking]:
        shares[kind] += 1
    return shares


def assigned(source: str, doc_ids: Sequence[str], per_document: int) -> list[tuple[str, Shape]]:
    """A document and a shape for each query to draft: all documents once, then all once more, and so on.

    Shapes come in turn by weight, so that every beginning of the list is spread as the source is. A document gets no
    kind twice while there is another.
    """
    shapes = SHAPES[source]
    given = dict.fromkeys((shape.kind for shape in shapes), 0)
    taken: dict[str, set[str]] = {doc_id: set() for doc_id in doc_ids}
    pairs: list[tuple[str, Shape]] = []
    total = sum(shape.weight for shape in shapes)
    for place, doc_id in enumerate([doc_id for _ in range(per_document) for doc_id in doc_ids], start=1):
        left = [shape for shape in shapes if shape.kind not in taken[doc_id]] or list(shapes)
        shape = max(left, key=lambda shape: place * shape.weight - given[shape.kind] * total)
        given[shape.kind] += 1
        taken[doc_id].add(shape.kind)
        pairs.append((doc_id, shape))
    return pairs
