"""A whole eval set that is small enough for every test: sixteen short bills, 25 queries, encoders without weights."""

import hashlib
import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import yaml

from runner.embed.encoder import Encoder, InProcessEncoder
from runner.embed.probe import PARAPHRASES
from runner.eval_set.catalog import SOURCES, EncoderSpec, encoder
from runner.eval_set.corpus import keep_sample, sample_of, sample_to_draw
from runner.eval_set.plan import default_plan_text
from runner.eval_set.version import Version, open_version

# Number, short title, what it is for, and what it orders: one line each becomes a section.
BILLS = (
    (
        "101",
        "Orchard Frost Relief Act",
        "loans to fruit growers after a late frost",
        "The bureau shall lend money to growers of apples and cherries whose blossom froze in April or May.",
        "A grower who burns straw to warm an orchard shall tell the fire brigade before nightfall.",
        "Loans are repaid in eight harvests and carry no interest in a year without fruit.",
    ),
    (
        "102",
        "Harbor Dredging Act",
        "deepening of small harbors",
        "The port office shall dredge the channel of every harbor that fishing boats use in winter.",
        "Mud that holds lead or tar shall be dried on land and never dropped at sea.",
        "A ferry landing is dredged first when the island behind it has no bridge.",
    ),
    (
        "103",
        "Night Bus Act",
        "buses between midnight and dawn",
        "Each city of more than fifty thousand people shall run a bus on main streets every half hour at night.",
        "Nurses, bakers and cleaners ride free with a letter from their employer.",
        "Drivers on the night shift rest for eleven hours before the next one.",
    ),
    (
        "104",
        "Schoolhouse Roof Act",
        "repair of leaking school roofs",
        "The board of education shall pay for new roofs on schools where rain has closed a classroom.",
        "Solar panels may be laid on a repaired roof if the beams carry them.",
        "Pupils are taught in a nearby hall while the work lasts, and a bus takes them there.",
    ),
    (
        "105",
        "Beekeeper Protection Act",
        "protection of hives from spraying",
        "A farmer who sprays against insects shall warn each beekeeper within two miles one day before.",
        "No spray may be used on an orchard in blossom between sunrise and sunset.",
        "A beekeeper who loses a hive is paid its price from the spray tax.",
    ),
    (
        "106",
        "River Gauge Act",
        "warning of floods by river gauges",
        "The weather service shall place a gauge on every river above a town and publish its level each hour.",
        "Sirens sound when the water rises two feet in an hour.",
        "A miller or a dam keeper who opens a gate shall call the weather service first.",
    ),
    (
        "107",
        "Village Doctor Act",
        "doctors in remote villages",
        "A doctor who serves five years in a village without a hospital owes nothing more on student loans.",
        "The health office shall pay for a car, a house and a nurse.",
        "Patients may see the doctor by video when snow has closed the road.",
    ),
    (
        "108",
        "Library Heating Act",
        "warm public libraries in winter",
        "Every public library shall be heated to nineteen degrees from October to April.",
        "Old people and families may stay until nine in the evening when it freezes.",
        "The cost is met from the duty on heating oil.",
    ),
    (
        "109",
        "Bridge Inspection Act",
        "inspection of road bridges",
        "An engineer shall inspect each road bridge every second year and publish what was found.",
        "A bridge with cracked steel is closed to trucks on the same day.",
        "Counties are paid half the cost of repair from the fuel tax.",
    ),
    (
        "110",
        "Fishing Season Act",
        "closed season for cod and herring",
        "No boat may catch cod in the northern bay from March to June.",
        "Herring nets have a mesh of at least one inch, and a warden may measure it in any harbor.",
        "Crews who stay ashore are paid two thirds of the catch of the year before.",
    ),
    (
        "111",
        "Forest Path Act",
        "paths and shelters in public forests",
        "The forest office shall keep a path to every summit that the public used before this act.",
        "A shelter with a stove stands at every tenth mile.",
        "Horses and bicycles are led, not ridden, where the path is narrower than four feet.",
    ),
    (
        "112",
        "Clean Well Act",
        "testing of private wells",
        "The health office shall test a private well for lead, nitrate and arsenic once a year at no charge.",
        "A family whose well is foul gets drinking water by truck within two days.",
        "Farmers within half a mile keep a book of the dung and spray they spread.",
    ),
    (
        "113",
        "Honest Scales Act",
        "weights and scales in markets",
        "An inspector shall test the scales of each market twice a year with brass weights.",
        "A seller whose scale is wrong by more than one part in a hundred pays a fine.",
        "Scales for gold and medicine are tested every month.",
    ),
    (
        "114",
        "Rural Telephone Act",
        "telephone and internet lines to farms",
        "A telephone company shall lay a line to any farm within nine miles of its exchange.",
        "Internet over the line carries video in both directions without breaking.",
        "The company may hang its wires on the poles of the power company for a fair rent.",
    ),
    (
        "115",
        "Veterans Workshop Act",
        "workshops where veterans learn a trade",
        "The labor office shall open a workshop in each county where veterans learn carpentry, welding or baking.",
        "A veteran is paid while learning, and keeps the tools at the end.",
        "A firm that hires a veteran from the workshop pays no payroll tax for one year.",
    ),
    (
        "116",
        "Museum Sunday Act",
        "free museums on Sundays",
        "A museum that takes public money is free of charge on the first Sunday of the month.",
        "School classes enter free on every day if they write one week before.",
        "Guards are paid double on Sundays.",
    ),
)

# Kind and text; the document that each was written from is the bill of the same place, the last nine begin anew.
QUERIES = (
    ("topic", "loans for growers of apples and cherries after frost"),
    ("topic", "dredging of a harbor channel for fishing boats"),
    ("topic", "city bus at night every half hour"),
    ("topic", "new roofs on schools where rain closed a classroom"),
    ("topic", "warn the beekeeper before spraying"),
    ("topic", "gauge on a river above a town, level published each hour"),
    ("topic", "doctor in a village without a hospital"),
    ("topic", "public library heated in winter"),
    ("topic", "engineer shall inspect each road bridge"),
    ("topic", "closed season for cod from March to June"),
    ("topic", "path and shelter in the public forest"),
    ("topic", "test private well for lead and arsenic"),
    ("topic", "scales in a market and brass weights"),
    ("topic", "telephone line to a farm and internet"),
    ("topic", "workshop where veterans learn carpentry"),
    ("topic", "museum free of charge on Sunday"),
    ("authority", "which office may forgive student loans"),
    ("authority", "who may measure the mesh of nets in a harbor"),
    ("citation", "Night Bus Act"),
    ("citation", "River Gauge Act and the weather service"),
    ("paraphrase", "video over the line when snow has closed the road"),
    ("paraphrase", "paid from the fuel tax or the duty on heating oil"),
    ("paraphrase", "spray on an orchard in blossom"),
    ("paraphrase", "lead in mud or in drinking water"),
    ("quote", "keeps the tools at the end"),
)

LOOSE = frozenset("a an and are at by each every for from has if in is it no of on or shall that the their to who with")


def draw(version: Version, folder: Path) -> None:
    """The version's sample out of a folder, as the first run draws it."""
    keep_sample(version, sample_of(version.source, sample_to_draw(version), folder))


def write_corpus(folder: Path) -> Path:
    """`folder` with one bill-DTD file a bill; every third bill repeats sections of two others."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, (number, title, purpose, *orders) in enumerate(BILLS):
        sections = [f"This Act may be cited as the {title}.", *orders]
        if place % 3 == 0:
            # Long enough that chunkers of 256 and of 512 tokens cut it in different places.
            others = [BILLS[(place + step) % len(BILLS)] for step in (5, 9)]
            sections += [f"{order} {order}" for other in others for order in other[3:]] * 2
        body = "".join(
            f"<section><enum>{n}.</enum><header>Part {n} on {purpose}</header><text>{text}</text></section>"
            for n, text in enumerate(sections, start=1)
        )
        name = f"BILLS-117hr{number}ih"
        (folder / f"{name}.xml").write_text(
            f'<bill bill-stage="Introduced-in-House"><metadata><dublinCore><title>117 HR {number} IH: {title}</title>'
            f"</dublinCore></metadata><form><official-title>A bill on {purpose}.</official-title></form>"
            f"<legis-body>{body}</legis-body></bill>",
            encoding="utf-8",
        )
    return folder


def query_rows() -> list[dict[str, str]]:
    """The 25 queries as rows of queries.yaml."""
    return [
        {
            "id": f"q{place + 1:02d}",
            "text": text,
            "kind": kind,
            "origin": "person" if place % 2 else "claude",
            "source_document": f"BILLS-117hr{BILLS[place % len(BILLS)][0]}ih",
        }
        for place, (kind, text) in enumerate(QUERIES)
    ]


def write_queries(folder: Path) -> Path:
    """queries.yaml with 25 queries in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "queries.yaml"
    path.write_text(yaml.safe_dump({"schema_version": 1, "queries": query_rows()}, sort_keys=False), encoding="utf-8")
    return path


def make_version(tmp_path: Path, *, rehearsal: bool = False) -> Version:
    """The first version of `demo` below `tmp_path`; nothing is written yet, and its corpus is given explicitly.

    The command line finds the same places with --eval-set-path=tmp_path/eval-sets/demo and
    PER_SOURCE_EVAL_CACHE=tmp_path/.cache.
    """
    eval_set = tmp_path / "eval-sets" / "demo"
    workspace = (eval_set, eval_set / ".work", tmp_path / ".cache")
    return open_version(*workspace, SOURCES["demo"], rehearsal=rehearsal)


def write_plans(version: Version) -> None:
    """Both default plans with fewer resamples and draws, which halves the time of scoring.

    The record's pool is so deep that it holds every document, the rehearsal's is not.
    """
    for rehearsal in (False, True):
        text = default_plan_text(version.source, rehearsal=rehearsal)
        if not rehearsal:
            text = text.replace("pool_depth: 10", "pool_depth: 30")
        path = version.plan_path(rehearsal=rehearsal)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = few_draws(text)
        path.write_text(text, encoding="utf-8")


def few_draws(plan: str) -> str:
    """The plan's text with the fewest resamples and draws that still allow every verdict."""
    fewer = {"resamples: 10000": "resamples: 500", "draws: 100000": "draws: 1000", "draws: 2000": "draws: 200"}
    for default, few in fewer.items():
        plan = plan.replace(default, few)
    return plan


def begin(tmp_path: Path, *, rehearsal: bool = False) -> Version:
    """A version with plans, judge prompt, corpus and queries: all that a preregistration needs."""
    version = make_version(tmp_path, rehearsal=rehearsal)
    write_plans(version)
    version.judge_path.write_bytes(version.judge_prompt.read_bytes())
    draw(version, write_corpus(tmp_path / "corpus"))
    write_queries(version.folder)
    return version


class SmallEncoder(InProcessEncoder):
    """Words hashed to directions; passes the probe, carries a catalogued name, needs no weights."""

    batch_tokens = 512

    def __init__(self, name: str) -> None:
        catalogued = encoder(name)
        # Some sections are longer, so that there is truncation to count.
        limit = 120 if catalogued.max_tokens else 0
        self.spec = EncoderSpec(
            name=name, model=catalogued.model, revision=catalogued.revision, dim=48, max_tokens=limit
        )

    def identity(self) -> dict[str, object]:
        return {"encoder": self.spec.name, "max_tokens": self.spec.max_tokens, "backend": {"name": "local"}}

    def token_counts(self, texts, side):
        return np.array([len(_words(text)) for text in texts], dtype=np.int64)

    def encode(self, texts, side):
        rows = np.array([self._row(text) for text in texts], dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        # The neighbours in a batch change the last bits, as a matrix product does.
        return rows * np.float32(1 + 1e-7 * (len(texts) % 3))

    def _row(self, text: str):
        words = _words(text)[: self.spec.max_tokens or None]
        row = sum((_direction(word) * (0.1 if word in LOOSE else 1.0) for word in words), _direction("") * 0.1)
        return row + 40 * _direction(f"topic {_TOPICS[text]}") if text in _TOPICS else row


_TOPICS = {sentence: number for number, pair in enumerate(PARAPHRASES) for sentence in pair}


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


@cache
def _direction(word: str):
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "big")
    return np.random.default_rng(np.random.PCG64(seed)).standard_normal(48)


def fake_encoders(name: str) -> Encoder:
    """What `local_encoder.encoder_for` is for real weights."""
    return SmallEncoder(name)


def unscored(version: Version) -> Version:
    """A version whose evening is over, left with what it is scored from: no results, no decision, no lock."""
    for name in ("lock.json", "decision.json", "results.json", "results.html", "receipt.json"):
        (version.record / name).unlink()
    return version


def answers(version: Version) -> list[Path]:
    """One answer file beside each exported batch, graded by the share of a query's words that the evidence holds."""
    paths = []
    for batch in sorted(version.judging.glob("batch-*.jsonl")):
        rows = [json.loads(line) for line in batch.read_text(encoding="utf-8").splitlines()]
        path = batch.with_name(batch.name.replace("batch", "answers"))
        path.write_text("".join(json.dumps(_answer(row)) + "\n" for row in rows), encoding="utf-8")
        paths.append(path)
    return paths


def _answer(row: dict) -> dict:
    wanted = set(_words(row["query"])) - LOOSE
    read = set(_words(row["title"] + " " + " ".join(passage["text"] for passage in row["evidence"])))
    share = len(wanted & read) / len(wanted)
    grade = sum(share >= bar for bar in (0.4, 0.6, 0.9))
    return {"query_id": row["query_id"], "doc_id": row["doc_id"], "grade": grade, "reason": f"{share:.2f} of the words"}
