"""Every command of the documents runs here, or its page says what it needs that a test has not.

A command over `bills` or another source runs over a small version of `demo` in the state that its verb needs.
"""

import json
import os
import re
import shlex
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from runner.base import places
from runner.base.places import CHECKOUT, DRIVER
from runner.commands import main as cli
from runner.commands.verbs import VERBS, found_verb
from runner.decide.decide import decision_sentence
from runner.eval_set.catalog import SOURCES
from runner.eval_set.version import load_decision, load_results, open_version
from tests.support.parsers import parser_of, runnable
from tests.support.small_set import answers, make_version

PAGES = [CHECKOUT / "README.md", CHECKOUT / "CONTRIBUTING.md", *sorted((CHECKOUT / "docs").glob("*.md"))]
GENERATED = ("data-status.md",)
"""Pages that the tool writes, which tests of their own hold to it."""

NEEDS = {
    r"--modal|\bmodal\b": "account",
    r"--encoder-url|--encoder NAME": "server|weights",
    r"^run .*--judge|^doctor .*--judge": "language model|service",
    r"^fetch|--live": "publisher",
    r"^grade --case-study|^run (--source=)?beir|docs/matrix/": "collection|made again",
    r"^post-bulk": "production",
    r"^replay": "decided|embed it again",
    r"^tripwire|demo/v1/results.json": "make demo",
    r"--rehearse|--try": "rehears|packaged",
    r"^mcp": "stdin",
    r"@int8 x": "packaged",
    r"practice/demo": "[Ss]tand-ins",
    r"^doctor": "checks",
    r"^pooled": "locked",
}
"""What a command needs that a small version has not, by its words, and how its page says so."""

ELSEWHERE = {
    r"^try ": "tests/tools/test_try.py runs it over a folder that it writes",
    r"^sources --write": "writes into the checkout; tests/report and tests/tools run it",
    r"^embed \S+ --corpus-path \S+ --to": "tests/commands runs it into another file",
    r"^choose gao_reports": "tests/decide runs it",
    r" tenants\b|--documents|--baseline": "tests/evening/test_own_documents.py runs them over laws that it writes",
    r"^version --all": "tests/evening/test_bump.py runs it over two sources",
    r"YOUR_CHUNKER|explorations/": "names what a reader would have made",
}

DRAFTED = "schema_version: 1\nqueries: [{id: q90, text: who may harvest cod in spring, kind: topic, origin: claude}]\n"
BATCH = "eval-sets/demo/.work/demo/v1/judging/batch-0001.jsonl"

BEGUN = ("queries", "init")
WAITING = ("labels", "version")
"""Verbs that run over a version with queries alone, or over one that waits for judges; others over a decided one."""


class Documented(NamedTuple):
    """A command of a page, as words behind the program's name."""

    page: Path
    words: tuple[str, ...]

    @property
    def line(self) -> str:
        return shlex.join(self.words)

    def __str__(self) -> str:
        return f"{self.page.name}: {self.line}"


def documented() -> list[Documented]:
    """Command lines of indented blocks and code spans, and the README's code spans that begin with a verb."""
    found: dict[Documented, None] = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = re.findall(rf"(?:^ {{4,}}|`){re.escape(DRIVER)} ([^`\n#]+)", text, re.MULTILINE)
        if page.name == "README.md":
            spans = re.findall(r"`([a-z-]+ [^`]+)`", text)
            lines += [span for span in spans if span.split()[0] in VERBS]
        for line in lines:
            words = shlex.split(re.sub(r"[][]|\.\.\.|\| *--live| && .*", " ", line))
            found[Documented(page, tuple(cli.spelled(words) if words[0].startswith("--") else words))] = None
    return list(found)


ALL = documented()
OURS = [one for one in ALL if one.page.name not in GENERATED]
NEEDING = [(one, says) for one in OURS for pattern, says in NEEDS.items() if re.search(pattern, one.line)]
LEFT_OUT = {one for one, _ in NEEDING} | {one for one in OURS if any(re.search(found, one.line) for found in ELSEWHERE)}


@pytest.mark.parametrize("one", ALL, ids=str)
def test_a_command_of_the_documents_parses(one: Documented) -> None:
    name, rest = found_verb(one.words)
    parser_of(name).parse_args(rest)


def test_a_page_says_what_its_commands_need_that_a_test_has_not() -> None:
    silent = [str(one) for one, says in NEEDING if not re.search(says, one.page.read_text(encoding="utf-8"))]
    assert silent == []


def over_demo(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command over `demo`, in the folder of the test, with cells that need no model."""
    line = re.sub(r" --eval-set-path \S+", "", shlex.join(words))
    line = re.sub(rf"(?<=[ =])({'|'.join(SOURCES)})(?= |$)", "demo", line)
    line = re.sub(r"minilm-[\w-]+ x ", "bm25 x ", line).replace("--cells CELL", "--cells 'bm25 x recursive_v1'")
    line = re.sub(r"--reason \S+ --by \S+", "--reason TEXT --by NAME", line)
    line = line.replace(" CELL", " 'bm25 x whole_doc'").replace("labels page demo FILE", f"labels page demo {BATCH}")
    return tuple(shlex.split(re.sub(r"--corpus-path \S+", "--corpus-path corpus", line)))


EXAMPLES = {over_demo(tuple(shlex.split(VERBS[name].example))) for name, _ in runnable()}
"""Those of the helps, which tests/commands runs."""

HERE = sorted({over_demo(one.words) for one in OURS if one not in LEFT_OUT} - EXAMPLES)


@pytest.fixture(name="folder")
def _folder(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ready: Path,
    decided_evening: Path,
    waiting_evening: Path,
) -> Path:
    """A version in the state that a command needs, and the files that the documents name."""
    line = " ".join(words)
    is_proof = line.startswith("version") and re.search("--confirm|--encoder", line)  # beside a cell that was chosen
    if line.startswith(WAITING) and not is_proof:
        state = waiting_evening
    else:
        state = ready if line.startswith(BEGUN) else decided_evening
    shutil.copytree(state, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv(places.CACHE_VARIABLE, str(tmp_path / ".cache"))
    monkeypatch.chdir(tmp_path)
    version = make_version(tmp_path)
    if line.startswith("choose") or is_proof:  # what is judged and scored, and not decided yet
        for name in ("decision.json", "lock.json"):
            (version.record / name).unlink()
    if is_proof:
        where = f"--eval-set-path={version.folder.parent}"
        assert cli.main(["choose", "demo", where, "bm25 x whole_doc", "--reason=it gained", "--by=A. Person"]) == 0
    if line.startswith("labels"):
        answers(version)[0].rename(tmp_path / "FILE")
        if not line.startswith(("labels import", "labels page")):
            where = f"--eval-set-path={version.folder.parent}"
            assert cli.main(["labels", "import", "demo", where, "--judge=NAME", "--person", "FILE"]) == 0
    for name in ("drafts.yaml", "eval-sets/bills/v1/queries.yaml"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(version.queries_path.read_text() if name.endswith("queries.yaml") else DRAFTED)
    (tmp_path / "log.csv").write_text("query,count\nnight bus,3\nfrost loans,1\n")
    per_query = [{"qid": f"q{n}", "ndcg10": n / 10} for n in range(8)]
    for name in ("RUN.json", "OTHER.json"):
        (tmp_path / name).write_text(json.dumps({"perQuery": per_query}))
    (tmp_path / "PUBLISHED.json").write_text(json.dumps({"BM25": 0.3}))
    (tmp_path / "qrels.txt").write_text("".join(f"q{n} 0 d{n} 1\n" for n in range(8)))
    (tmp_path / "run.txt").write_text("".join(f"q{n} Q0 d{n} 1 1.0 t\n" for n in range(8)))
    if "bench" in line and "--sample" not in line:
        assert cli.main(["grade", "--sample", "bench"]) == 0
    if line.startswith("verify bench"):
        assert cli.main(["lock", "bench", "-o", "bench.lock.json"]) == 0
    return tmp_path


@pytest.mark.parametrize("words", HERE, ids=shlex.join)
def test_a_command_of_the_documents_runs(
    words: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [f"--eval-set-path={folder / 'eval-sets' / 'demo'}"] if {"demo", "--source=demo"} & set(words) else []
    capsys.readouterr()
    code = cli.main([*words, *where])
    said = capsys.readouterr()
    assert code == 0, said.out + said.err
    assert said.out


def test_the_sample_of_the_readme_is_what_the_demo_prints() -> None:
    demo = open_version(CHECKOUT / "eval-sets" / "demo", CHECKOUT / ".work", CHECKOUT / ".cache", SOURCES["demo"])
    if not (demo.record / "decision.json").exists():
        why = "THE DEMO WAS NOT RUN: `make demo` writes the decision that README.md shows"
        if os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    sample = (CHECKOUT / "README.md").read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    # Shortened: what is chosen and by whom, not why.
    assert decision_sentence(load_decision(demo)).rpartition(": ")[0] in " ".join(sample.split())
    table = sample.partition("nDCG@10  ")[2].partition("not shown")[0].splitlines()[1:]
    shown = re.sub(r" x( +[\d.].*)\n *(\S+)", r" x \2\1", "\n".join(table))
    scores = {row.cell: row.scores["ndcg@10"].mean for row in load_results(demo).cells}
    rows = re.findall(r"^(\S+ x \S+) +([\d.]+)", shown, re.MULTILINE)
    assert len(rows) >= 3
    assert [(cell, score) for cell, score in rows if score != f"{scores[cell]:.{len(score) - 2}f}"] == []
