"""The documents are held to the code, and every committed eval set to the schemas of docs/schemas."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import jsonschema
import pytest
import yaml

from runner.base.places import CHECKOUT, EVAL_SETS
from runner.base.plain_yaml import read_yaml
from runner.commands.write_schemas import FOLDER, SCHEMAS, schema_text
from runner.eval_set.plan import read_plan
from runner.eval_set.shapes.plan import Prior
from tests.support.packed import unpacked
from tests.support.parsers import parser_of, runnable

README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
CONTRIBUTING = (CHECKOUT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ARCHITECTURE = (CHECKOUT / "docs" / "eval-architecture.md").read_text(encoding="utf-8")
PRIORS = {
    "prior.yaml": ("bills", "federal_register", "us_code", "hearing_transcripts"),
    "prior-of-four.yaml": ("public_laws", "ecfr_and_cfr", "congressional_record", "committee_reports"),
}
"""Files of what other sources' rehearsals say, and the sources whose rehearsal plans have it."""

FOREIGN_FLAGS = {
    "--files",
    "--no-index",
    "--no-build-isolation",
    "--index-url",
    "--strict",
    "--n",
    "--minutes",
    "--only",
    "--topic",
    "--default-prompt",
    "--no-deps",
    "--build-arg",
    "--rm",
}


def tracked_files() -> list[Path]:
    """What git holds, and what it would take: files that are neither ignored nor committed yet."""
    command = ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout: the files that it holds cannot be listed")
    paths = (CHECKOUT / name for name in sorted(set(listed.split("\0"))) if name)
    return [path for path in paths if path.is_file()]


def flags(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def schema(name: str) -> dict[str, object]:
    return json.loads((FOLDER / f"{name}.json").read_bytes())


def test_the_schemas_in_docs_are_those_of_the_code() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(SCHEMAS)
    for name in SCHEMAS:
        written = (FOLDER / f"{name}.json").read_text(encoding="utf-8")
        assert written == schema_text(name), "run: .venv/bin/python -m runner.commands.write_schemas"


def test_the_architecture_links_to_every_schema() -> None:
    assert re.findall(r"\]\(schemas/(.+?)\.json\)", ARCHITECTURE) == list(SCHEMAS)


@pytest.mark.parametrize("name", SCHEMAS)
def test_every_schema_is_a_json_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


def rows_of(path: Path) -> Iterator[tuple[str, object]]:
    """The schema's name and the value of everything that a file of an eval set holds."""
    name = "cell" if path.parent.name == "cells" else path.stem
    if path.suffix == ".yaml":
        yield name, yaml.safe_load(path.read_bytes())
    elif path.suffix == ".json":
        yield name, json.loads(path.read_bytes())
    elif path.suffix == ".bz2":
        yield "lists", json.loads(unpacked(path))
    elif path.suffix == ".jsonl":
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1]):
            corpus = "corpus-header" if number == 0 else "corpus-row"
            yield {"corpus": corpus, "labels": "label"}[name], json.loads(line)


def eval_set_files() -> list[Path]:
    versions = [path for path in tracked_files() if fnmatch(path.relative_to(CHECKOUT).as_posix(), "eval-sets/*/v*/*")]
    return [path for path in versions if path.suffix in (".yaml", ".json", ".jsonl") or path.name == "lists.json.bz2"]


@pytest.mark.slow
def test_every_committed_eval_set_keeps_to_the_schemas() -> None:
    validators = {name: jsonschema.Draft202012Validator(schema(name)) for name in SCHEMAS}
    files = eval_set_files()
    assert {path.name for path in files} >= {"queries.yaml", "lists.json.bz2"}
    for path in files:
        for name, value in rows_of(path):
            problem = jsonschema.exceptions.best_match(validators[name].iter_errors(value))
            assert problem is None, f"{path} as {name}: {problem.json_path} {problem.message}"


@pytest.mark.parametrize("name", PRIORS)
def test_rehearsals_have_the_prior_of_one_file(name: str) -> None:
    """It was made of other sources alone; all production plans have what the catalog said when they were frozen."""
    prior = Prior.model_validate(read_yaml(EVAL_SETS / name)["prior"])
    plans = {path.parts[-4]: read_plan(path) for path in EVAL_SETS.glob("*/v1/rehearsal/plan.yaml")}
    assert {source for source, plan in plans.items() if plan.prior == prior} == set(PRIORS[name])
    frozen = [read_plan(EVAL_SETS / source / "v1" / "plan.yaml").prior for source in (*PRIORS[name], "demo")]
    assert [prior for prior in frozen if prior != frozen[0]] == []
    assert frozen[0].from_results == []


def test_a_source_takes_at_most_seven_megabytes() -> None:
    sizes: Counter[str] = Counter()
    for path in tracked_files():
        room, name, *_ = (*path.relative_to(CHECKOUT).parts, "")
        if room == "eval-sets":
            sizes[name] += path.stat().st_size
    assert len(sizes) > 12
    assert {name: size for name, size in sizes.items() if size > 7_000_000} == {}


def test_the_readme_is_one_sitting() -> None:
    lines = README.splitlines()
    assert len(lines) <= 140
    assert max(map(len, lines)) <= 200


def test_the_documents_are_one_weekend() -> None:
    pages = sorted((CHECKOUT / "docs").glob("*.md"))
    words = [len(text.split()) for text in (README, CONTRIBUTING, *(page.read_text("utf-8") for page in pages))]
    assert len(pages) <= 20
    assert sum(words) <= 32_000


def test_the_map_of_the_house_names_every_room() -> None:
    rooms = {path.parent.name for path in (CHECKOUT / "runner").glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)` \|", CONTRIBUTING, re.MULTILINE)) >= rooms


def test_the_index_of_the_documents_names_every_page() -> None:
    pages = {path.name for path in (CHECKOUT / "docs").glob("*.md")} - {"README.md"}
    index = (CHECKOUT / "docs" / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(([\w-]+\.md)\)", index)) == pages


def test_every_flag_of_the_documents_exists() -> None:
    existing = {flag for name, _ in runnable() for action in parser_of(name)._actions for flag in action.option_strings}
    existing |= {"--dry-run", "--post-bulk", "--cells", "--source", "--version"} | {"--docs"}
    named = flags("".join(path.read_text(encoding="utf-8") for path in documents() if path.name != "CHANGELOG.md"))
    assert named - existing - FOREIGN_FLAGS == set()


def documents() -> list[Path]:
    """Markdown for readers; that of tests/data is what readers of sources are tried on."""
    data = CHECKOUT / "tests" / "data"
    return [path for path in tracked_files() if path.suffix == ".md" and data not in path.parents]


def test_every_make_target_of_the_documents_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    texts = "\n".join(path.read_text(encoding="utf-8") for path in documents())
    named = re.findall(r"(?:^    |`)make ([a-z-]+)", texts, re.MULTILINE)
    assert named
    assert set(named) <= targets


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_link_between_documents_resolves() -> None:
    for path in documents():
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            linked = (path.parent / name).resolve() if name else path
            assert linked.exists(), f"{path}: {target}"
            assert not anchor or anchor in anchors(linked.read_text(encoding="utf-8")), f"{path}: {target}"


def test_every_page_that_the_product_names_exists() -> None:
    texts = [path.read_text("utf-8") for path in tracked_files() if path.suffix in (".py", ".j2", ".ipynb")]
    named = {page for text in texts for page in re.findall(r"\bdocs/[a-z][\w/-]*\.md\b", text)}
    assert len(named) > 8
    assert {page for page in named if not (CHECKOUT / page).exists()} == set()


def test_every_module_that_the_documents_name_exists() -> None:
    found = set()
    for path in documents():
        text = path.read_text(encoding="utf-8")
        if path.name == "CHANGELOG.md":
            continue  # it names modules of earlier releases
        text = re.sub(
            r"^## Recipes\n.*?^(?=## )", "", text, flags=re.MULTILINE | re.DOTALL
        )  # those that one will write
        found |= set(re.findall(r"\b(?:runner|chunkers|samplers|tests|benchmarks)/[\w/]*\w(?:\.\w+)?", text))
        found |= {name.replace(".", "/") for name in re.findall(r"\brunner(?:\.[a-z_]+)+(?=`| import)", text)}
    assert len(found) > 30
    # the last part of a dotted name may be a function
    named = {
        name: [CHECKOUT / name, CHECKOUT / f"{name}.py", (CHECKOUT / name).parent.with_suffix(".py")] for name in found
    }
    assert {name for name, places in named.items() if not any(place.exists() for place in places)} == set()


FORBIDDEN = re.compile(
    r"(?<![\w.])/(?:work|root|tmp/team)/|\bissue #|\bpypi\.org|pythonhosted|download\.pytorch", re.IGNORECASE
)


@pytest.mark.slow
def test_no_file_speaks_of_a_machine_a_tracker_or_a_registry() -> None:
    found = []
    for path in tracked_files():
        if path == Path(__file__).resolve():
            continue  # it holds the words as a pattern
        text = path.read_bytes().decode(errors="replace")
        found += [f"{path.relative_to(CHECKOUT)}: {match[0]}" for match in FORBIDDEN.finditer(text)]
    assert found == []


def test_what_the_demo_writes_is_ignored_and_what_it_reads_is_not() -> None:
    guide = (CHECKOUT / "eval-sets" / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `demo/v1/(.+?) \| (input|written)", guide, re.MULTILINE))
    names = {kind: re.findall(r"[\w./-]+\w/?", cell) for cell, kind in rows.items()}
    ignored = (CHECKOUT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {f"/eval-sets/demo/v1/{name}" for name in names["written"]} == {
        line for line in ignored if line.startswith("/eval-sets/demo/")
    }
    assert not set(names["written"]) & set(names["input"])
