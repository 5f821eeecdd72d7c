import dataclasses
import re

import pytest
import yaml

from chunkers.registry import cut_at
from runner.base.errors import InputError, PlanError
from runner.base.records import parse_cell
from runner.eval_set.catalog import ENCODERS, SOURCES, EncoderSpec
from runner.eval_set.plan import (
    check_cell,
    default_cells,
    default_plan_text,
    encoder_cells,
    first_cells,
    load_plan,
    plan_digest,
    read_plan,
)

FIRST = {"api": "anthropic", "model": "claude-sonnet-4-6"}
SECOND = {"api": "anthropic", "model": "claude-opus-4-6", "share": 0.1}


@pytest.fixture(name="path")
def _path(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(default_plan_text(SOURCES["demo"], rehearsal=False))
    return path


def change(path, **fields):
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **fields}))


def load(path, source="demo", *, rehearsal=False):
    return load_plan(path, SOURCES[source], 1, rehearsal=rehearsal)


def problems(path, source="demo", *, rehearsal=False):
    with pytest.raises(PlanError) as caught:
        load(path, source, rehearsal=rehearsal)
    assert str(path) in str(caught.value)
    assert all(problem in str(caught.value) for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize("rehearsal", [False, True])
@pytest.mark.parametrize("source", SOURCES.values(), ids=lambda spec: spec.name)
def test_every_default_plan_meets_every_criterion(tmp_path, source, rehearsal):
    path = tmp_path / "plan.yaml"
    path.write_text(default_plan_text(source, rehearsal=rehearsal, version=3))
    plan = load_plan(path, source, 3, rehearsal=rehearsal)
    assert plan.cells == default_cells(source, rehearsal=rehearsal)
    assert len(plan.cells) <= 12
    assert plan.version == 3
    assert (plan.rule.min_gain, plan.rule.max_recall_loss) == (0.02, 0.02)


@pytest.mark.parametrize("rehearsal", [False, True])
@pytest.mark.parametrize("name", [*SOURCES])
def test_a_default_plan_tests_the_sum_and_the_structural_chunker_first_and_fuses_no_ranks(name, rehearsal):
    source = SOURCES[name]
    if source.policy == "external":
        return
    cells, encoder = default_cells(source, rehearsal=rehearsal), "minilm-l6-v2"
    if not (rehearsal or name == "demo"):
        encoder = "arctic-l-v2.0"
    # MiniLM reads 256 tokens, so that longer sections are cut there.
    structural = cut_at(source.structural_chunker, 256 if encoder == "minilm-l6-v2" else 0)
    alone = f"{encoder} x {structural}"
    assert first_cells(cells)[0] == f"sum(bm25,{encoder}) x {structural}"
    assert first_cells(cells)[1:] == [alone if source.baseline != alone or rehearsal else cells[1]]
    assert cells[0] not in first_cells(cells)
    assert not [cell for cell in cells if cell.startswith("rrf(")]
    assert (f"bm25>{encoder} x {structural}" in cells) == source.citation_heavy == (name in ("us_code", "public_laws"))
    under_a_path = [cell for cell in cells if cell.partition(" x ")[2].startswith("fixed_path")]
    windows = "fixed_path_256_25" if encoder == "minilm-l6-v2" else "fixed_path_512_50"
    by_path = name in ("us_code", "public_laws", "ecfr_and_cfr")
    assert under_a_path == [f"sum(bm25,{encoder}) x {windows}"] * by_path


@pytest.mark.parametrize("baseline", ["bm25 x whole_doc", "minilm-static-384 x fixed_token_512_50"])
def test_beside_a_baseline_of_another_retriever_the_structural_chunker_is_tested_first_too(baseline):
    source = dataclasses.replace(SOURCES["bills"], baseline=baseline)
    alone = "minilm-l6-v2 x section_aware_bills_256_v1"
    summed = "sum(bm25,minilm-l6-v2) x section_aware_bills_256_v1"
    assert first_cells(default_cells(source, rehearsal=False)) == [summed, alone]


def test_an_encoder_that_a_new_plan_is_to_have_comes_with_the_baselines_and_the_structural_chunker():
    source = dataclasses.replace(SOURCES["us_code"], encoders=("qwen3-embedding-0.6b",))
    plain = default_cells(SOURCES["us_code"], rehearsal=False)
    added = [cell for cell in default_cells(source, rehearsal=False) if cell not in plain]
    assert added == [
        "qwen3-embedding-0.6b x fixed_token_512_50",
        "qwen3-embedding-0.6b x usc_uslm_section_v1",
        "sum(bm25,qwen3-embedding-0.6b) x usc_uslm_section_v1",
    ]
    assert encoder_cells("minilm-l6-v2", "a x c", "speaker_turn_v1")[1:] == [
        "minilm-l6-v2 x speaker_turn_256_v1",
        "sum(bm25,minilm-l6-v2) x speaker_turn_256_v1",
    ]
    assert len(encoder_cells("minilm-l6-v2", "a x recursive_256_v1", "recursive_v1")) == 2
    assert default_cells(source, rehearsal=True) == default_cells(SOURCES["us_code"], rehearsal=True)
    beside_minilm = dataclasses.replace(SOURCES["demo"], encoders=("qwen3-embedding-0.6b",))
    cells = default_cells(beside_minilm, rehearsal=False)
    assert "qwen3-embedding-0.6b x section_aware_bills_v1" in cells, "it reads more than MiniLM"


def test_a_plan_that_breaks_several_criteria_hears_of_all_of_them_at_once(path):
    change(
        path,
        source="bills",
        version=2,
        baseline="minilm-l6-v2 x fixed_token_1024_100",
        pool_depth=5,
        cells=[
            *("minilm-l6-v2 x fixed_token_512_50", "minilm-l6-v2 x fixed_token_512_50"),
            *("minilm x fixed_token_256_25", "minilm-l6-v2 x fixed_token_256", "arctic-m-v2.0 x whole_doc"),
            *("nonsense", " minilm-l6-v2 x recursive_v1"),
        ],
    )
    found = problems(path)
    expected = [
        "source: the plan is for 'bills', this version is of 'demo'",
        "version: the plan is for v2, this is v1",
        "There is no encoder 'minilm'; did you mean 'minilm-l6-v2'?",
        "There is no chunker 'fixed_token_256'; did you mean 'fixed_token_256_25'?",
        "arctic-m-v2.0 is excluded",
        "'nonsense' is not a cell",
        "write 'minilm-l6-v2 x recursive_v1' for ' minilm-l6-v2 x recursive_v1'",
        "'minilm-l6-v2 x fixed_token_512_50' is listed twice",
        "first: 'sum(bm25,minilm-l6-v2) x section_aware_bills_256_v1' is not a challenger",
        "first: 'minilm-l6-v2 x section_aware_bills_256_v1' is not a challenger",
        "criterion 1: 3 model x chunker cells; at least 6 are needed",
        "criterion 1: no BM25 cell",
        "criterion 2: the baseline 'minilm-l6-v2 x fixed_token_1024_100' is not among the cells",
        "criterion 2: the production baseline of demo is 'minilm-l6-v2 x fixed_token_512_50'",
        "criterion 3: no dense cell uses the structural chunker section_aware_bills_v1",
        "pool_depth: 5; at least 10",
    ]
    assert len(found) == len(expected)
    for said, problem in zip(expected, found, strict=True):
        assert said in problem


def test_every_field_of_the_wrong_shape_is_named_at_once(path):
    change(path, pool_depth="30", rule={"min_gain": float("nan"), "max_recall_loss": 2}, depth=10, relevant_grade=4)
    found = problems(path)
    for place in ("pool_depth", "rule.min_gain", "rule.max_recall_loss", "depth", "relevant_grade"):
        assert sum(problem.startswith(f"{place}: ") for problem in found) == 1
    assert len(found) == 5
    assert "rule.min_gain: not a number (found nan)" in found


def test_a_plan_that_states_neither_prior_nor_cost_has_those_of_a_new_plan(path):
    stated, rows = load(path), yaml.safe_load(path.read_text())
    del rows["prior"], rows["switching_cost"]
    path.write_text(yaml.safe_dump(rows))
    assert load(path) == stated
    own = {"BM25": {"mean": 0.01, "sd": 0.03}}
    change(path, prior={"kinds": own, "from_results": ["ab" * 32]})
    kinds = stated.model_dump()["prior"]["kinds"] | own
    assert load(path).model_dump()["prior"] == {"kinds": kinds, "from_results": ["ab" * 32]}


@pytest.mark.parametrize(
    ("place", "fields"),
    [
        ("baseline", {"baseline": 5}),
        ("sample.size", {"sample": {"size": 0, "seed": 1}}),
        ("schema_version", {"schema_version": 2}),
        ("switching_cost", {"switching_cost": -0.01}),
        ("switching_cost", {"switching_cost": float("nan")}),
        ("prior.kinds.window", {"prior": {"kinds": {"window": {"mean": 0.0, "sd": 0}}}}),
        ("prior.kinds.window.sd", {"prior": {"kinds": {"window": {"mean": 0.0, "sd": float("inf")}}}}),
        ("prior.kinds.window.mean", {"prior": {"kinds": {"window": {"mean": -2.0, "sd": 0.1}}}}),
        ("prior.mean", {"prior": {"mean": -0.01}}),
        # What would be frozen and judged, and could then never be scored.
        ("bootstrap.resamples", {"bootstrap": {"resamples": 10**7 + 1, "confidence": 0.95, "seed": 1}}),
        (
            "null_gate.draws",
            {"null_gate": {"nulls": "graded v1", "draws": 10**6 + 1, "tau": 0, "alpha": 0.1, "seed": 1}},
        ),
        (
            "significance.draws",
            {"significance": {"method": "phantom t v1", "draws": 10**12, "alpha": 0.1, "seed": 1}},
        ),
    ],
)
def test_a_field_with_a_wrong_value_is_named_with_what_was_found(path, fields, place):
    change(path, **fields)
    (problem,) = problems(path)
    assert problem.startswith(f"{place}: ")
    assert "(found " in problem


@pytest.mark.parametrize("name", ["section_aware_bills_v1-bare", "section_aware_bills_256_v1"])
def test_the_structural_chunker_counts_without_its_context_too_and_cut_further(path, name):
    structural = re.compile("section_aware_bills(_256)?_v1")
    cells = [*dict.fromkeys(structural.sub(name, text) for text in load(path).cells), "minilm-l6-v2 x whole_doc"]
    change(path, cells=cells, first=[])
    assert load(path).cells == cells


def test_a_reranker_is_one_of_the_catalogue_and_no_dense_cell(path):
    cells = load(path).cells
    change(path, cells=[*cells, "rerank(bm25,bge-reranker-v2-m3) x section_aware_bills_256_v1"])
    load(path)
    change(path, cells=[*cells, "rerank(bm25,bge-reranker) x whole_doc"])
    assert ["'bge-reranker-v2-m3'" in problem for problem in problems(path)] == [True]
    dense = [text for text in cells if not text.endswith("fixed_token_256_25")]
    change(path, cells=[*dense, "rerank(bm25,ms-marco-minilm-l6) x recursive_v1"])
    assert [problem.partition(":")[0] for problem in problems(path)] == ["criterion 1"]


@pytest.mark.parametrize("baseline", ["bm25 x whole_doc", "minilm-static-384 x fixed_token_512_50"])
def test_over_a_baseline_without_vectors_of_a_model_with_layers_next_to_nothing_is_believed(tmp_path, baseline):
    path, source = tmp_path / "plan.yaml", dataclasses.replace(SOURCES["demo"], baseline=baseline)
    own, usual = (default_plan_text(each, rehearsal=False) for each in (source, SOURCES["demo"]))
    path.write_text(own)
    kinds = load_plan(path, source, 1, rehearsal=False).prior.kinds
    assert {(one.mean, one.sd) for one in kinds.values()} == {(0.0, 0.2)}
    # What others gained over vectors, left where the baseline was edited, is refused; without it the same holds.
    fields = yaml.safe_load(own) | {"prior": yaml.safe_load(usual)["prior"]}
    path.write_text(yaml.safe_dump(fields))
    with pytest.raises(PlanError) as caught:
        load_plan(path, source, 1, rehearsal=False)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["prior"]
    del fields["prior"]
    path.write_text(yaml.safe_dump(fields))
    assert load_plan(path, source, 1, rehearsal=False).prior.kinds == kinds


def test_a_rehearsal_may_have_another_baseline(tmp_path):
    path = tmp_path / "plan.yaml"
    path.write_text(default_plan_text(SOURCES["bills"], rehearsal=True))
    load(path, "bills", rehearsal=True)
    (found,) = problems(path, "bills")
    assert "criterion 2" in found
    assert "a plan with another baseline is a rehearsal" in found


@pytest.mark.parametrize(("depth", "accepted"), [(9, False), (10, True), (30, True)])
def test_a_pool_of_ten_is_enough(path, depth, accepted):
    change(path, pool_depth=depth)
    if accepted:
        assert load(path).pool_depth == depth
    else:
        assert [problem.partition(":")[0] for problem in problems(path)] == ["pool_depth"]


@pytest.mark.parametrize("content", [b"", b"[]", b"just words", b"- a\n- b"])
def test_a_plan_that_is_no_mapping_is_refused(path, content):
    path.write_bytes(content)
    assert problems(path)[0].startswith("the whole: ")


def test_the_digest_holds_the_rule_and_neither_the_cells_nor_the_layout(path):
    plan = load(path)
    before = plan_digest(plan)
    change(path)
    assert plan_digest(load(path)) == before
    more = plan.model_copy(update={"cells": [*plan.cells, "bm25-okapi x whole_doc"]})
    assert plan_digest(more).rule_sha256 == before.rule_sha256
    assert plan_digest(more).cells == more.cells


@pytest.mark.parametrize(
    "fields",
    [
        {"rule": {"min_gain": 0.03, "max_recall_loss": 0.02}},
        {"relevant_grade": 1},
        {"pool_depth": 50},
        {"sample": {"size": 500, "seed": 1}},
        {"bootstrap": {"resamples": 10000, "confidence": 0.9, "seed": 2026}},
        {"switching_cost": 0.0},
        {"judges": {"first": FIRST}},
        {"prior": {"kinds": {"window": {"mean": 0.0, "sd": 0.05}}}},
        {"null_gate": {"nulls": "graded v1", "draws": 2000, "tau": 0.01, "alpha": 0.05, "seed": 2026}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_every_setting_that_can_move_a_verdict_moves_the_digest(path, fields):
    before = plan_digest(load(path)).rule_sha256
    change(path, **fields)
    assert plan_digest(read_plan(path)).rule_sha256 != before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("claude-haiku-4-5", "claude-haiku-4-5-20251001"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
    ],
)
@pytest.mark.parametrize("rehearsal", [False, True])
def test_a_second_judge_that_is_the_first_again_is_refused(path, first, second, rehearsal):
    change(path, judges={"first": {**FIRST, "model": first}, "second": {**SECOND, "api": "openai", "model": second}})
    (problem,) = problems(path, rehearsal=rehearsal)
    assert problem.startswith("judges: the second judge must be another model than the first")


@pytest.mark.parametrize("api", ["anthropic", "files"])
def test_a_second_reader_by_file_may_be_the_first_model_under_another_name(path, api):
    by_file = {"api": "files", "model": FIRST["model"]}
    change(path, judges={"first": {**FIRST, "api": api}, "second": {**by_file, "share": 0.15}})
    assert load(path).judges.second.by_file
    change(path, judges={"first": by_file, "second": {**SECOND, "model": FIRST["model"]}})
    assert len(problems(path)) == 1, "labels of a model that is asked bear its name, so nothing tells the two apart"


@pytest.mark.parametrize("model", ["", "two words", "claude\x1b[2J", "modèle", "qwen\n", "a\u202eb"])
def test_a_model_id_is_printable_ascii(path, model):
    change(path, judges={"first": {**FIRST, "model": model}, "second": {**SECOND, "model": model}})
    assert [problem.partition(":")[0] for problem in problems(path)] == ["judges.first.model", "judges.second.model"]


def test_vectors_can_be_cut_to_fewer_dimensions_than_they_have_and_kept_as_bits_by_eights(monkeypatch):
    for kind in ("383", "int8", "bit"):
        check_cell(parse_cell(f"minilm-l6-v2@{kind} x whole_doc"))
    with pytest.raises(InputError, match="384 dimensions"):
        check_cell(parse_cell("minilm-l6-v2@384 x whole_doc"))
    monkeypatch.setitem(
        ENCODERS, "odd", EncoderSpec(name="odd", model="a/odd", revision="0" * 40, dim=100, max_tokens=0)
    )
    check_cell(parse_cell("odd@int8 x whole_doc"))
    with pytest.raises(InputError, match="odd has 100"):
        check_cell(parse_cell("odd@bit x whole_doc"))


def test_two_cells_of_one_file_name_are_refused(path, monkeypatch):
    monkeypatch.setitem(
        ENCODERS, "minilm-l6-v2-bit", ENCODERS["minilm-l6-v2"].model_copy(update={"name": "minilm-l6-v2-bit"})
    )
    cells = default_cells(SOURCES["demo"], rehearsal=False)
    change(path, cells=[*cells, "minilm-l6-v2@bit x recursive_v1", "minilm-l6-v2-bit x recursive_v1"])
    (problem,) = problems(path)
    assert "'minilm-l6-v2@bit x recursive_v1' and 'minilm-l6-v2-bit x recursive_v1'" in problem


def plan_of(tmp_path, name, **fields):
    path = tmp_path / "plan.yaml"
    path.write_text(default_plan_text(SOURCES[name], rehearsal=False))
    change(path, **fields)
    return path


def test_an_option_that_the_reader_does_not_have_is_refused_with_those_that_it_has(tmp_path):
    path = plan_of(tmp_path, "bills", sample={"size": 5, "seed": 1, "options": ["notices"]})
    assert list(problems(path, "bills")) == ["sample.options: bills has no option 'notices'; it has none"]
    path = plan_of(tmp_path, "federal_register", sample={"size": 5, "seed": 1, "options": ["notice"]})
    (found,) = problems(path, "federal_register")
    assert found.startswith("sample.options: federal_register has no option 'notice'; it has notices: ")
    change(path, sample={"size": 5, "seed": 1, "options": ["notices"]})
    assert load(path, "federal_register").sample.options == ["notices"]


def test_a_plan_that_decides_has_criterion_5_s_values_and_a_rehearsal_may_have_others(path):
    for rule in ({"min_gain": 0.001, "max_recall_loss": 0.02}, {"min_gain": 0.02, "max_recall_loss": 0.5}):
        change(path, rule=rule)
        (found,) = problems(path)
        assert found.startswith("criterion 5: ")
        assert load(path, rehearsal=True).rule.model_dump() == rule


@pytest.mark.parametrize(("name", "refused"), [("us_code", 1), ("public_laws", 1), ("bills", 0)])
def test_a_source_of_citations_needs_bm25_re_ranked_which_fusion_is_not(tmp_path, name, refused):
    cells = default_cells(SOURCES[name], rehearsal=False)
    path = plan_of(tmp_path, name, cells=[cell for cell in cells if not cell.startswith("bm25>")])
    assert any(cell.startswith("sum(") for cell in read_plan(path).cells)
    found = problems(path, name) if refused else ()
    assert [problem.partition(":")[0] for problem in found] == ["criterion 4"] * refused
    if not refused:
        load(path, name)


def test_what_is_taken_over_from_a_sibling_is_no_part_of_what_is_frozen(tmp_path):
    text = default_plan_text(SOURCES["public_laws"], rehearsal=False)
    path = plan_of(tmp_path, "public_laws")
    assert "# usc_uslm_section_v1 is taken over from us_code; the decision has its result there." in text
    change(path, reuse={"chunker": "usc_uslm_section_v1", "source": "us_code", "result": "x"})
    assert problems(path, "public_laws")[0].startswith("reuse: not a known field")


def test_a_first_challenger_is_a_cell_beside_the_baseline(path):
    plan = load(path)
    other = plan.cells[2]
    change(path, first=[other])
    assert load(path).first == [other]
    for wrong in (["bm25 x nothing"], [plan.baseline], [other, other]):
        change(path, first=wrong)
        assert {problem.partition(":")[0] for problem in problems(path)} == {"first"}


def test_the_structural_chunker_of_a_hybrid_alone_is_not_enough(path):
    cells = [text for text in load(path).cells if not text.startswith("minilm") or "section_aware" not in text]
    more = [f"minilm-l6-v2 x {name}" for name in ("whole_doc", "recursive_v1", "fixed_token_1024_100")]
    change(path, cells=[*cells, *more], first=[])
    assert [problem.partition(":")[0] for problem in problems(path)] == ["criterion 3"]


def test_variants_do_not_count_toward_criterion_1(path):
    cells = default_cells(SOURCES["demo"], rehearsal=False)
    change(path, cells=[*cells, f"{cells[0].partition(' ')[0]}@bit x fixed_token_512_50"])
    load(path)
    change(path, cells=[cells[0].replace(" x ", "@bit x "), *(cell for cell in cells if "256_25" not in cell)])
    assert [problem.partition(":")[0] for problem in problems(path)] == ["criterion 1"]
