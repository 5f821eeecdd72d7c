"""Each recipe of CONTRIBUTING.md, followed in a copy of the checkout: the files that it names are all it takes."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chunkers.registry import CHUNKERS
from runner.base.places import CACHE_VARIABLE, CHECKOUT
from runner.eval_set.shapes.gate import ControlResult
from tests.support.loopback import Loopback, Request, Wire, as_json, served
from tests.support.small_collection import external_version, write_collection

COPIED = ("runner", "chunkers", "samplers", "templates", "bin", "pyproject.toml")
CONTRIBUTING = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^### (.+?)\n(.+?)(?=^##)", CONTRIBUTING, re.MULTILINE | re.DOTALL))


def steps(recipe: str) -> set[str]:
    """The files that the numbered steps of a recipe name."""
    numbered = re.findall(r"^\d\. .+(?:\n   .+)*", RECIPES[recipe], re.MULTILINE)
    return set(re.findall(r"`([\w/]+\.(?:py|html\.j2))`", "\n".join(numbered)))


class Checkout:
    """A copy of the checkout in which a recipe is followed, and what was changed there."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.changed: set[str] = set()
        for name in COPIED:
            if (CHECKOUT / name).is_dir():
                shutil.copytree(CHECKOUT / name, root / name)
            else:
                shutil.copy2(CHECKOUT / name, root / name)

    def write(self, path: str, text: str) -> None:
        assert not (self.root / path).exists()
        self.changed.add(path)
        (self.root / path).write_text(text, encoding="utf-8")

    def replace(self, path: str, old: str, new: str) -> None:
        """Put `new` in place of what the pattern finds, which must be one place."""
        text, count = re.subn(old, new, (self.root / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert count == 1, f"{path}: {old!r} is in {count} places; mend what this recipe's test looks for"
        self.changed.add(path)
        (self.root / path).write_text(text, encoding="utf-8")

    def insert(self, path: str, before: str, text: str) -> None:
        self.replace(path, re.escape(before), (text + before).replace("\\", r"\\"))

    def run(self, *command: str, code: int = 0) -> str:
        """What a Python process in the copy says; its output, then its errors."""
        environment = os.environ | {"PYTHONPATH": str(self.root), CACHE_VARIABLE: str(self.root / ".cache")}
        done = subprocess.run(
            [sys.executable, *command], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def driver(self, *arguments: str, code: int = 0) -> str:
        return self.run("bin/per-source-eval.py", *arguments, code=code)

    def evaluated(self, place: Path, gate: str = "") -> tuple[dict, str]:
        """results.json and the page of a public collection, compared without a model."""
        version = external_version(place, cells=("bm25 x whole_doc", "bm25-plain x whole_doc"))
        plan = version.plan_path(rehearsal=False)
        if gate:
            plan.write_text(re.sub(r"graded v\d+", gate, plan.read_text(encoding="utf-8")), encoding="utf-8")
        collection = write_collection(place / "collection")
        self.driver("--source=beir", f"--corpus-path={collection}", f"--eval-set-path={version.folder.parent}")
        made = json.loads((version.folder / "results.json").read_bytes())
        return made, (version.folder / "results.html").read_text(encoding="utf-8")


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "checkout")


def test_a_verb_is_a_row_and_a_function(checkout):
    row = '    Verb("greet", "say a name", "greeting:greet", "greet Ann", "NAME   whose\\n--times N=1   how often"),\n'
    checkout.insert("runner/commands/verbs.py", '    Verb(\n        "mcp",', row)
    said = "def greet(options):\n    print(*[options.name] * options.times)\n"
    checkout.write("runner/commands/greeting.py", said)
    assert checkout.driver("greet", "Ann", "--times", "2") == "Ann Ann\n"
    assert "--times N" in checkout.driver("greet", "--help")
    assert "is not a whole number" in checkout.driver("greet", "Ann", "--times=-1", code=2)
    assert checkout.changed - steps("A verb") == {"runner/commands/greeting.py"}


def test_every_file_of_the_recipes_is_there_but_those_that_they_have_one_write():
    own = {"press_releases", "one_line", "parrot", "first_three"}
    named = {path for recipe in RECIPES for path in steps(recipe)}
    assert {Path(path).stem for path in named if not (CHECKOUT / path).exists()} == own


@pytest.mark.slow
def test_a_source_is_a_reader_and_a_row(checkout, tmp_path):
    checkout.write(
        "samplers/sources/press_releases.py",
        '''"""Press releases, as text."""

from runner.base.errors import DocumentError
from runner.base.records import Document
from samplers.source_format import FileContent, SourceFormat


def read(data: bytes, name: str, options: frozenset[str]) -> FileContent:
    """The one release of a file."""
    first, _, text = data.decode().partition("\\n")
    if not first.startswith("PRESS RELEASE "):
        raise DocumentError(name, "it is no press release")
    number = first.removeprefix("PRESS RELEASE ")
    document = Document(f"PR-{number}", text, f"Release {number}", "all", f"PR-{number}", "")
    return FileContent((document,), {"heading": len(first) - 2})


FORMAT = SourceFormat(read, (".txt",))
''',
    )
    checkout.insert(
        "samplers/registry.py",
        '    SourceSpec(\n        name="demo",',
        """    SourceSpec(
        name="press_releases",
        trigger_order=13,
        structural_chunker="recursive_v1",
        format="samplers.sources.press_releases",
        known_by=KnownBy(lines=("^PRESS RELEASE ",)),
        elsewhere="the office mails them. Ask it at https://example.org/press",
        queries=query_kinds(topic=(12, "a subject", "ferries"), amount=(8, "a size", "the size of berth 99")),
    ),
""",
    )
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for number in range(30):
        text = f"PRESS RELEASE {number}\nBerth {number} is opened for {number} ferries of the {number}th kind.\n"
        (corpus / f"{number}.txt").write_text(text, encoding="utf-8")
    given = ("--source=press_releases", f"--corpus-path={corpus}")
    assert "undecided: documents" in checkout.driver(*given, "--dry-run", code=1)
    assert "30 documents sampled" in checkout.driver(*given, code=3)
    form = checkout.root / ".work/press_releases/v1/reading/queries.yaml.template"
    assert "topic 15:" in form.read_text(encoding="utf-8")
    said = checkout.run(
        "-c",
        """
from runner.base.errors import InputError
from samplers.corpus.recognise import named_elsewhere
from samplers.feeds.request import FetchRequest
from samplers.feeds.table import feed_of

print(named_elsewhere(b"PRESS RELEASE 7", "7.txt", "bills"))
try:
    feed_of("press_releases", FetchRequest())
except InputError as error:
    print(error)
""",
    ).splitlines()
    assert said[0].startswith("this is a press_releases file")
    assert "https://example.org/press" in said[1]
    assert checkout.changed == {"samplers/sources/press_releases.py", "samplers/registry.py"} <= steps("A source")


def test_a_chunker_is_a_function_and_a_row(checkout):
    checkout.write(
        "chunkers/one_line.py",
        '''"""A line is a chunk."""

import re

from chunkers.narrow import Narrow
from chunkers.outline import Node
from chunkers.tokens import tokenize
from runner.base.records import Chunk, Document, Span


def one_line_v1(document: Document, most: int = 0) -> list[Chunk]:
    """The lines, in order; with `most`, each cut further until an encoder of so many tokens reads it."""
    text, tokens = document.text, tokenize(document.text)
    pieces = [line.span() for line in re.finditer(r"[^\\n]*\\S[^\\n]*", text)]
    if most:
        narrow = Narrow(text, tokens, Node(0, len(text), "", "", holds_sections=True), lambda _: "", most)
        pieces = [part for piece in pieces for part in narrow.cut(piece)]
    return [
        Chunk(document.doc_id, index, Span(start, end), "", tokens.count(start, end))
        for index, (start, end) in enumerate(pieces)
    ]
''',
    )
    path = "chunkers/registry.py"
    checkout.insert(path, "from chunkers.recursive import", "from chunkers.one_line import one_line_v1\n")
    checkout.insert(path, '    "recursive_v1": ', '    "one_line_v1": Row(one_line_v1, limit=0),\n')
    said = checkout.run(
        "-c",
        """
from chunkers.registry import chunker, limit_of
from runner.base.records import Document
from runner.tools.doctor.parts import chunks_documents

document = Document("d", "one\\n\\ntwo words\\n", "Title", "all", "d", "")
print([(chunk.span.start, chunk.span.end) for chunk in chunker("one_line_v1-bare")(document)], limit_of("one_line_v1"))
print(chunks_documents())
document = Document("d", "short\\n" + "The keeper shall mend the quay. " * 99, "Title", "all", "d", "")
chunks = chunker("one_line_256_v1")(document)
print(limit_of("one_line_256_v1"), max(chunk.n_tokens for chunk in chunks) <= 256, len(chunks) > 2, chunks[0].span.end)
""",
    )
    assert said.splitlines() == [
        "[(0, 3), (5, 14)] 0",
        f"{len(CHUNKERS) + 1} chunkers, every character in a chunk",
        "256 True True 5",
    ]
    assert checkout.changed == {"chunkers/one_line.py", path} <= steps("A chunker")


@pytest.mark.slow
def test_an_encoder_is_a_row(checkout):
    checkout.insert(
        "runner/eval_set/catalog.py",
        '        EncoderSpec(\n            name="mpnet-base-v2",',
        """        EncoderSpec(
            name="abacus-v1",
            model="example/abacus",
            revision="0123456789abcdef0123456789abcdef01234567",
            dim=64,
            max_tokens=512,
            gflop_per_token=66.0,
            weights_gb=9.0,
        ),
""",
    )
    given = ("--source=bills", f"--corpus-path={CHECKOUT / 'eval-sets/demo/corpus'}")
    checkout.driver(*given, code=3)
    plan = checkout.root / "eval-sets/bills/v1/plan.yaml"
    plan.write_text(plan.read_text(encoding="utf-8").replace("mpnet-base-v2", "abacus-v1"), encoding="utf-8")
    said = checkout.driver(*given, "--dry-run", "--modal", "--gpu=L4", code=1)
    assert re.search(r"abacus-v1: [\d,]+ tokens \(from characters\) at 550 tokens/s", said)
    assert checkout.changed == {"runner/eval_set/catalog.py"} == steps("An encoder")


def test_a_gpu_is_a_row(checkout):
    checkout.insert("runner/embed/cost/prices.py", '    "H100": ', '    "B300": Gpu(0.002, 2_000),\n')
    said = checkout.run(
        "-c",
        """
from runner.embed.cost.estimate import rate
from runner.embed.cost.prices import RemoteOptions

print(RemoteOptions(gpu="b300").price, rate("mxbai-large-v1", "B300"))
""",
    )
    assert said.split() == ["0.0020131", "100000"]
    assert checkout.changed == {"runner/embed/cost/prices.py"} == steps("A GPU")


@pytest.mark.slow
def test_a_null_is_a_row_and_a_new_name_of_the_gate(checkout, tmp_path):
    path = "runner/gate/nulls.py"
    checkout.insert(
        path,
        "GRADED: ",
        '''def _first_by_name(trials: Trials, judged: Judged) -> Floats:
    """The first ten documents by name."""
    return _for_all(trials, trials.bench.corpus[: trials.bench.depth])


def _alphabet(trials: Trials) -> list[Ints]:
    """The same, as a system."""
    bench = trials.bench
    return [bench.lists([bench.corpus[: bench.depth]] * len(bench.query_ids))]


''',
    )
    checkout.replace(path, r"^(GATES: .*=) \{", r'\1 {"graded v99": GRADED_V99, ')
    checkout.insert(
        path,
        "GATES: ",
        """GRADED_V99 = (
    *GRADED,
    Null(
        "first by name",
        "the first documents by name for every query",
        _first_by_name,
        "giving every query the first documents by name does {how} the run",
        "ids may tell what is relevant",
        controls={"alphabet": _alphabet},
    ),
)

""",
    )
    checkout.replace("runner/eval_set/shapes/plan.py", r'Literal\["graded v1"', 'Literal["graded v99", "graded v1"')
    checkout.replace("runner/eval_set/plan.py", r'"graded v\d+"', '"graded v99"')
    results, page = checkout.evaluated(tmp_path, "graded v99")
    for cell in results["cells"]:
        assert [(null["name"], null["verdict"]) for null in cell["gate"]["nulls"]][-1] == ("first by name", "pass")
    assert [control["name"] for control in results["controls"]][:2] == ["oracle", "alphabet"]
    assert all(ControlResult(**control).behaves for control in results["controls"])
    assert page.count("first by name") >= 2
    assert "alphabet" in page
    named = {path, "runner/eval_set/shapes/plan.py", "runner/eval_set/plan.py"}
    assert checkout.changed == named == steps("A null")


class Echo(Loopback):
    """A server that sends back what it was sent."""

    def answer(self, request: Request) -> Wire:
        return as_json(request.body)


def test_a_judges_service_is_a_client_its_name_and_where_it_is_opened(checkout):
    checkout.write(
        "runner/judge/models/parrot.py",
        '''"""A model that says what it is told."""

from runner.base.canonical import JSON
from runner.base.http_client import Service
from runner.judge.models.client import JUDGE_KEY, URL_FLAG, Ask, JudgeClient, Reply


class Parrot(JudgeClient):
    """The model."""

    service = Service(URL_FLAG, JUDGE_KEY, "Look for the parrot.")

    def endpoint(self, url: str) -> str:
        """Return its perch."""
        return url + "/say"

    def request(self, ask: Ask) -> JSON:
        """Return the ask's own words."""
        return {"text": ask.user}

    def read(self, ask: Ask, answer: JSON) -> Reply:
        """Return the reply in them."""
        return Reply(key=ask.key, text=answer["text"], model=self.model)
''',
    )
    checkout.replace("runner/eval_set/shapes/labels.py", r"^APIS = \(", 'APIS = ("parrot", ')
    path = "runner/judge/models/api.py"
    checkout.insert(path, "from runner.judge.models.openai_chat", "from runner.judge.models.parrot import Parrot\n")
    opened = '    if spec.api == "parrot":\n        return Parrot(spec.model, budget, price, way)\n'
    checkout.insert(path, '    if spec.api == "openai":\n        return OpenAIChat', opened)
    priced = '    if spec.api == "parrot":\n        return Price(2.0, 4.0)\n'
    checkout.insert(path, "    if spec.by_file:\n        return BY_FILE", priced)
    program = """
import sys
from pathlib import Path
from runner.eval_set.shapes.labels import JudgeSpec
from runner.judge.models.api import JudgeOptions, open_model
from runner.judge.models.client import Ask

with open_model(JudgeSpec(api="parrot", model="grey"), JudgeOptions(url=sys.argv[1]), Path("work")) as model:
    print([(reply.key, reply.text, reply.model) for reply in model.replies([Ask("k", "", "hello", {}, 9)])])
    print(model.budget.spent())
"""
    with served(Echo()) as server:
        answer, cost = checkout.run("-c", program, server.url).splitlines()
    assert answer == "[('k', 'hello', 'grey')]"
    assert float(cost) > 0
    assert checkout.changed == {"runner/judge/models/parrot.py", "runner/eval_set/shapes/labels.py", path}
    assert checkout.changed <= steps("A judge's service")


@pytest.mark.slow
def test_a_statistic_on_the_page_takes_four_files(checkout, tmp_path):
    checkout.write(
        "runner/score/first_three.py",
        '''"""How much of the very top is relevant."""

from runner.base.records import Qrels, Run


def first_three(run: Run, qrels: Qrels, relevant_grade: int) -> float:
    """The share of the first three hits that have at least that grade."""
    hits = [qrels.get(query_id, {}).get(hit.doc_id, 0) for query_id in run.hits for hit in run.hits[query_id][:3]]
    return sum(grade >= relevant_grade for grade in hits) / len(hits)
''',
    )
    checkout.insert(
        "runner/eval_set/shapes/results.py",
        "    provenance: Provenance\n",
        "    first_three: float | None = None\n",
    )
    path = "runner/decide/cell_results.py"
    checkout.insert(path, "from runner.score.score", "from runner.score.first_three import first_three\n")
    line = "        first_three=first_three(run, comparison.qrels, plan.relevant_grade),\n"
    checkout.insert(path, "        provenance=part(Provenance, ", line)
    template = "templates/_why.html.j2"
    checkout.insert(template, '<th scope="col" class="num">MRR@10</th>', '<th scope="col" class="num">First three</th>')
    cell = '<td class="num">{% if row.first_three is not none %}{{ row.first_three | percent }}{% endif %}</td>\n'
    checkout.insert(template, '<td class="num">{{ mean(row.scores["mrr@10"]) }}</td>', cell)
    results, page = checkout.evaluated(tmp_path)
    shares = {row["cell"]: row["first_three"] for row in results["cells"]}
    assert 0 < shares["bm25 x whole_doc"] < shares["bm25-plain x whole_doc"] < 1
    assert '<th scope="col" class="num">First three</th>' in page
    assert all(f'data-label="First three">{100 * share:.1f}' in page for share in shares.values())
    assert checkout.changed == {"runner/score/first_three.py", "runner/eval_set/shapes/results.py", path, template}
    assert checkout.changed <= steps("A statistic on the page")
    assert len(checkout.changed) <= 4
