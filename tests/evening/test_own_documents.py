"""Documents of one's own, by a baseline of one's own: from a folder to a recorded decision, and what is refused."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from runner.commands import main as cli
from runner.eval_set import version as versions
from runner.eval_set.catalog import PACKAGED_BASELINE, SOURCES, own_source
from runner.eval_set.plan import default_cells, load_plan
from runner.eval_set.shapes.plan import FieldOf
from runner.eval_set.version import existing_version, newest_version, source_of
from runner.evening.status import status
from samplers.registry import source_format
from tests.support.full_results import full_results

Command = Callable[..., tuple[int, str, str]]
_NAMED = """bees bicycles chimneys ferries goats hedges kites ladders lanterns mills orchards parades pigeons ponds
rafts scooters stoves swings tents towers wells windows bonfires drones kayaks puppets"""
THINGS = _NAMED.split()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workplace without any source of one's own."""
    monkeypatch.setattr(versions, "OWN_SETS", tmp_path / "own-sets")
    monkeypatch.setattr(versions, "WORKPLACE", tmp_path)
    return tmp_path


@pytest.fixture
def laws(place: Path) -> Path:
    """A folder of made-up laws."""
    for number, thing in enumerate(THINGS):
        path = place / "laws" / ("towns" if number % 2 else "ports") / f"{thing}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"---\ntopic: t{number % 3}\n---\n# {thing.title()} Act\n\n## Fee\n\nTo keep {thing} costs 5.\n"
        )
    return place / "laws"


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Command:
    """Exit code, stdout and stderr of a command line."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_init_writes_the_row_of_the_source_into_a_plan_in_a_folder_apart_from_the_record(
    command, laws, place, monkeypatch
):
    code, out, err = command("init", "--documents", laws, "--name", "tenants", "--field", "stratum=topic")
    assert (code, err.count("tenants/v1/plan.yaml")) == (0, 1)
    assert str(place / "own-sets" / "tenants" / "v1") in out
    version = existing_version("tenants")
    plan = version.plan()
    assert (plan.source, plan.baseline, plan.sample.documents) == ("tenants", PACKAGED_BASELINE, {"stratum": "topic"})
    assert version.source == own_source("tenants", {"stratum": "topic"})
    assert (version.flags, source_of(version.folder.parent)) == ("tenants", "tenants")
    # The same again changes nothing; another name is another source, which by default has that of the folder.
    assert command("init", "--documents", laws, "--name", "tenants", "--field", "stratum=topic")[0] == 0
    assert command("init", "--documents", laws, "--baseline", "bm25 x whole_doc")[0] == 0
    assert existing_version("laws").plan().baseline == existing_version("laws").source.baseline == "bm25 x whole_doc"
    _, out, _ = command("sources", "--json")
    assert [(row["source"], row["live"]) for row in json.loads(out) if not row["trigger_order"]] == [
        ("laws", "bm25 x whole_doc"),
        ("tenants", PACKAGED_BASELINE),
    ]
    assert command("sources", "tenants")[1].splitlines()[0].startswith("   documents of your own")
    monkeypatch.setattr("runner.tools.roster.WORKPLACE", place)
    assert command("sources", "--write")[0] == command("sources", "--check")[0] == 0
    assert "| tenants |" not in (place / "docs" / "data-status.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("init", "--documents", "LAWS", "--name", "bills"), "bills is a name that the roster has"),
        (("init", "--documents", "LAWS", "--name", "hearings"), "hearings is a name that the roster has"),
        (("init", "--documents", "LAWS", "--name", "../laws"), "'../laws' cannot name documents of your own"),
        (("init", "--documents", "LAWS", "--field", "body=x"), "write NAME=FIELD, NAME one of text, title"),
        (("init", "--documents", "LAWS", "--field", "text=a.b"), "not the name of a field"),
        (("init", "--documents", "LAWS", "--baseline", "minlm x whole_doc"), "There is no encoder 'minlm'"),
        (("init", "--documents", "LAWS/none"), "none does not exist"),
        (("init", "--documents", "LAWS", "bills"), "leave out SOURCE"),
        (("init", "--name", "x"), "--name and --field belong to --documents"),
        (("init",), "Which SOURCE?"),
        (("init", "bills", "--baseline", PACKAGED_BASELINE), "is of the record, which has the roster's"),
        (("next", "tenats"), "There is no source 'tenats'"),
        (("run", "../laws"), "There is no source '../laws'"),
    ],
)
def test_what_cannot_be_a_source_of_ones_own_is_refused_and_nothing_is_begun(command, laws, place, arguments, said):
    code, _, err = command(*(str(word).replace("LAWS", str(laws)) for word in arguments))
    assert (code, said in err) == (2, True), err
    assert not (place / "own-sets").exists()


def test_a_plan_names_fields_for_what_the_reader_is_told_of():
    assert set(get_args(FieldOf)) == set(source_format("documents").options)


@pytest.mark.parametrize("content", [b"", b"# emptied", b"source: caf\xe9", b"cells: ["])
def test_a_damaged_plan_of_ones_own_is_named_and_nobody_is_sent_to_begin_anew(command, laws, content):
    assert command("init", "--documents", laws)[0] == 0
    path = existing_version("laws").plan_path(rehearsal=False)
    path.write_bytes(content)
    code, _, err = command("plan", "laws")
    assert (code, str(path) in err, "init" in err) == (2, True, False), err
    path.with_name("preregistration.json").write_text("{}")
    assert command("plan", "laws")[0] == 4
    path.unlink()
    assert command("plan", "laws", "--eval-set-path", path.parents[1])[0] == 4


def test_a_plan_says_once_what_init_may_not_say_otherwise(command, laws):
    assert command("init", "--documents", laws)[0] == 0
    for flags, said in (
        (("--size", 5), "corpus.jsonl"),
        (("--field", "stratum=topic"), "corpus.jsonl"),
        (("--baseline", "bm25 x whole_doc"), "has minilm-l6-v2 x fixed_token_512_50"),
    ):
        code, _, err = command("init", "--documents", laws, *flags)
        assert (code, said in err, "Change it there" in err) == (2, True, True)
    path = existing_version("laws").plan_path(rehearsal=False)
    path.write_text(path.read_text().replace("documents: {}", "documents: {body: x}"))
    assert "sample.documents.body" in command("run", "laws")[2]
    path.write_text("source: [")
    assert "is not YAML" in command("next", "laws")[2]


@pytest.mark.parametrize(
    ("source", "own"), [("bills", "minilm-l6-v2 x recursive_v1"), ("beir", "minilm-l6-v2 x whole_doc")]
)
def test_of_the_roster_a_folder_of_ones_own_has_its_plans_baseline_and_the_record_the_rosters(
    place, monkeypatch, source, own
):
    row = SOURCES[source]
    text = f'source: {source}\nbaseline: "{own}"\n'
    for folder in ("mine", "eval-sets"):
        (place / folder / source / "v1").mkdir(parents=True)
        (place / folder / source / "v1" / "plan.yaml").write_text(text)
    monkeypatch.setattr(versions, "EVAL_SETS", place / "eval-sets")
    of_record, of_mine = (newest_version(source, place / folder / source).source for folder in ("eval-sets", "mine"))
    assert of_record == row
    assert of_mine.baseline == (row.baseline if row.policy == "external" else own)


def test_the_default_cells_begin_with_ones_own_baseline_and_need_no_hub_beside_a_packaged_one():
    for baseline in ("minilm-l6-v2 x by_heading_v1", "bm25 x whole_doc", "minilm-static-384@int8 x recursive_v1"):
        for rehearsal in (False, True):
            cells = default_cells(own_source("laws", {}, baseline), rehearsal=rehearsal)
            assert (cells[0], len(set(cells)), "arctic" in " ".join(cells)) == (baseline, len(cells), False)
    assert default_cells(own_source("laws", {}, "mpnet-base-v2 x by_heading_v1"), rehearsal=False)[0].startswith(
        "mpnet"
    )


def test_the_page_says_whose_baseline_it_is():
    from runner.report.sentences import own_baseline, weaknesses

    results = full_results(kind="production")
    assert own_baseline(results) == ""
    plan = results.plan
    mine = results.model_copy(update={"plan": plan.model_copy(update={"baseline": plan.cells[1]})})
    assert own_baseline(mine) == f"the roster's is {plan.baseline}"
    sample = plan.sample.model_copy(update={"documents": {}})
    ours = results.model_copy(update={"plan": plan.model_copy(update={"sample": sample, "source": "laws"})})
    assert any("is the plan's own (laws is no source of the roster)" in line for line in weaknesses(ours))


@pytest.mark.model
@pytest.mark.slow
def test_an_evening_of_own_documents_ends_with_a_recorded_decision_without_a_network(command, laws, place):
    assert command("init", "--documents", laws)[0] == 0
    table = place / "queries.csv"
    with table.open("w", newline="") as file:
        rows = csv.writer(file, delimiter=";")
        rows.writerow(["ID", "Query", "Document"])
        rows.writerows((f"mine{n}", each, f"{'towns' if n % 2 else 'ports'}-{each}") for n, each in enumerate(THINGS))
    code, out, _ = command("queries", "add", "laws", table)
    assert (code, "26 queries added as mine0 to mine25" in out) == (0, True)
    assert command("run", "laws")[0] == 3
    version = existing_version("laws")
    lines = (line for path in version.judging.glob("batch-*.jsonl") for line in path.read_text().splitlines())
    batches = [json.loads(line) for line in lines]
    pairs = sorted({(row["query_id"], row["doc_id"]) for row in batches})
    grades = place / "grades.csv"
    grades.write_text(
        "query_id,doc_id,grade\n"
        + "".join(f"{q},{d},{3 * d.endswith('-' + THINGS[int(q.removeprefix('mine'))])}\n" for q, d in pairs)
    )
    code, out, err = command("labels", "import", "laws", grades, "--judge=ann", "--person")
    assert (code, f"{len(pairs)} labels added" in out) == (0, True)
    open_step = next(step for step in status(version) if step.state == "open")
    # Said before `run`, which may lock: a second reading comes first.
    assert ["labels double laws" in said for said in (err, *open_step.ways)] == [True, True, False]
    # What is to be read a second time is waited for, until its file is answered or gone.
    assert command("labels", "double", "laws")[0] == 0
    assert (command("run", "laws")[0], version.results_path.exists()) == (3, False)
    for path in version.judging.glob("double-*"):
        path.unlink()
    code, out, _ = command("run", "laws")
    if code == 3:
        code, out, _ = command("choose", "laws", "recommended")
    assert code == 0, out
    assert command("plan", "laws")[1].splitlines()[-1] == "decision recorded"
    assert "plan&#39;s own baseline" in (version.folder / "results.html").read_text()
    assert command("verify", "laws", "--deep")[0] == 0
    # A second version begins with the same source.
    assert command("version", "laws", "--reason", "x", "--by", "ann")[0] == 0
    assert load_plan(existing_version("laws").plan_path(rehearsal=False), version.source, 2, rehearsal=False)
