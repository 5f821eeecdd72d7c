"""`encoders:` of plan.yaml: what is wrong is named by its line, and nothing that may be a key is repeated."""

import json
import re

import pytest
import yaml

from runner.base.errors import InputError, PlanError
from runner.base.places import CHECKOUT
from runner.eval_set import catalog
from runner.eval_set.catalog import SOURCES, EncoderSpec
from runner.eval_set.plan import default_plan_text, load_plan, pin, plan_digest, unpinned
from runner.eval_set.shapes.plan import Plan

SECRET = "vk-SECRET-0123456789"
HUB = """\
  bge-m3:
    model: BAAI/bge-m3
    revision: 5617a9f61b028005a4858fdac845db406aefb181
    dim: 1024
    max_tokens: 8192
    pooling: cls
    query_prompt: "find: "
"""
SERVICE = """\
  law:
    api: voyage
    url: https://api.voyageai.com/v1
    model: voyage-law-2
    dim: 1024
    max_tokens: 16000
    usd_per_million_tokens: 0.12
    key_env: VOYAGE_API_KEY
"""
CELLS = ["bge-m3 x whole_doc", "bm25>law x whole_doc"]
OF_OTHERS = (
    *("AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "COHERE_API_KEY", "GITHUB_TOKEN", "HF_TOKEN"),
    *("MODAL_TOKEN_SECRET", "PSE_JUDGE_API_KEY", "PER_SOURCE_EVAL_GOVINFO_KEY", "PGPASSWORD"),
)
PLAIN = default_plan_text(SOURCES["demo"], rehearsal=False)


def loaded(tmp_path, blocks, cells=()):
    path = tmp_path / "plan.yaml"
    listed = "".join(f'  - "{cell}"\n' for cell in cells)
    path.write_text(PLAIN.replace("cells:\n", f"cells:\n{listed}") + f"encoders:\n{blocks}")
    return load_plan(path, SOURCES["demo"], 1, rehearsal=False)


def test_own_encoders_are_used_in_cells_by_their_names_and_are_frozen_with_the_rule(tmp_path):
    plan = loaded(tmp_path, HUB + SERVICE, CELLS)
    sha = "5617a9f61b028005a4858fdac845db406aefb181"
    assert plan.encoders == {
        "bge-m3": EncoderSpec(
            name="bge-m3",
            model="BAAI/bge-m3",
            revision=sha,
            dim=1024,
            max_tokens=8192,
            query_prompt="find: ",
            pooling="cls",
        ),
        "law": EncoderSpec(
            name="law",
            model="voyage-law-2",
            dim=1024,
            max_tokens=16000,
            api="voyage",
            url="https://api.voyageai.com/v1",
            usd_per_million_tokens=0.12,
            key_env="VOYAGE_API_KEY",
        ),
    }
    assert Plan.model_validate(json.loads(json.dumps(plan.model_dump()))) == plan
    changes = [("", ""), ("5617", "0000"), ("8192", "512"), ("cls", "mean"), ("find: ", "query: ")]
    changed = [loaded(tmp_path, HUB.replace(old, new) + SERVICE, CELLS) for old, new in changes]
    digests = {plan_digest(plan).rule_sha256 for plan in changed}
    assert len(digests) == 5


@pytest.mark.parametrize(
    ("blocks", "old", "new", "line", "place"),
    [
        (HUB, "5617a9f61b028005a4858fdac845db406aefb181", "main", 3, "bge-m3.revision"),
        (HUB, "5617a9f61b028005a4858fdac845db406aefb181", '""', 3, "bge-m3.revision"),
        (HUB, "BAAI/bge-m3", "bge-m3", 2, "bge-m3.model"),
        (HUB, "dim: 1024", "dim: many", 4, "bge-m3.dim"),
        (HUB, "max_tokens: 8192", "max_tokens: 0", 5, "bge-m3.max_tokens"),
        (HUB, "pooling: cls", "pooling: first", 6, "bge-m3.pooling"),
        (HUB, "    pooling: cls\n", "", 1, "bge-m3.pooling"),
        (HUB, 'query_prompt: "find: "', "url: https://a.example", 7, "bge-m3.url"),
        (SERVICE, "key_env: VOYAGE_API_KEY", "pooling: cls", 8, "law.pooling"),
        (SERVICE, "    usd_per_million_tokens: 0.12\n", "", 1, "law.usd_per_million_tokens"),
        (HUB, "  bge-m3:", "  BGE M3:", 1, "BGE M3"),
        (HUB, "  bge-m3:", "  bm25-own:", 1, "bm25-own"),
        (HUB, "  bge-m3:", "  minilm-l6-v2:", 1, "minilm-l6-v2"),
        (HUB, HUB, "  bge-m3: 5\n", 1, "bge-m3"),
        (SERVICE, "api: voyage", "api: mistral", 2, "law.api"),
        (SERVICE, "https://api.voyageai.com/v1", f"https://me:{SECRET}@api.voyageai.com", 3, "law.url"),
        (SERVICE, "https://api.voyageai.com/v1", f"https://api.voyageai.com?key={SECRET}", 3, "law.url"),
        (SERVICE, "https://api", "http://api", 3, "law.url"),
        (SERVICE, "0.12", "-1", 7, "law.usd_per_million_tokens"),
        (SERVICE, "0.12", ".inf", 7, "law.usd_per_million_tokens"),
        (SERVICE, "VOYAGE_API_KEY", SECRET, 8, "law.key_env"),
        *((SERVICE, "VOYAGE_API_KEY", of_others, 8, "law.key_env") for of_others in OF_OTHERS),
        (SERVICE, "https://api.voyageai.com", "https://voyageai.com.example", 8, "law.key_env"),
        (SERVICE, "key_env: VOYAGE_API_KEY", f"api_key: {SECRET}", 8, "law.api_key"),
        (SERVICE, "key_env: VOYAGE_API_KEY", f"key_env: [{SECRET}]", 8, "law.key_env"),
        (SERVICE, "key_env: VOYAGE_API_KEY", 'query_prompt: "query: "', 8, "law.query_prompt"),
    ],
)
def test_a_bad_block_is_named_by_its_line_and_what_stands_there_is_not_repeated(
    tmp_path, blocks, old, new, line, place
):
    assert old in blocks
    with pytest.raises(PlanError) as caught:
        loaded(tmp_path, blocks.replace(old, new, 1))
    before = PLAIN.count("\n") + 1
    (problem,) = caught.value.problems
    assert problem.startswith(f"line {before + line}: encoders.{place}")
    assert SECRET not in str(caught.value)


def test_every_wrong_field_is_named_at_once(tmp_path):
    with pytest.raises(PlanError) as caught:
        loaded(tmp_path, HUB.replace("cls", "x").replace("1024", "x") + SERVICE.replace("0.12", "x"))
    assert len(caught.value.problems) == 3


def test_a_cell_that_names_no_encoder_is_told_the_plans_own_ones_too(tmp_path):
    with pytest.raises(PlanError, match="did you mean 'bge-m3'"):
        loaded(tmp_path, HUB, ["bge-m33 x whole_doc"])
    own = {"a": catalog.encoder("minilm-l6-v2").model_copy(update={"name": "a"})}
    assert catalog.encoder("a", own) is own["a"]
    with pytest.raises(InputError):
        catalog.encoder("a")


def test_the_example_of_the_docs_is_a_plan(tmp_path):
    page = (CHECKOUT / "docs" / "encoders.md").read_text()
    (example,) = re.findall(r"```yaml\nencoders:\n(.*?)```", page, re.DOTALL)
    own = loaded(tmp_path, example, ["bge-m3 x fixed_token_512_50", "bm25>law x section_aware_bills_v1"]).encoders
    assert {spec.api for spec in own.values() if spec.api} == {"openai", "cohere", "voyage"}
    assert own["bge-m3"].pooling == "cls"


OPEN, SHA = "embeddinggemma-300m", "5617a9f61b028005a4858fdac845db406aefb181"
OF_OPEN = [f"{OPEN} x fixed_token_512_50", f"bm25>{OPEN} x whole_doc"]


@pytest.mark.parametrize("blocks", ["", f"encoders:\n{HUB}", f"encoders: # ours\n{HUB}"])
def test_what_the_catalog_does_not_pin_is_pinned_in_the_plan_and_frozen_with_it(tmp_path, blocks):
    path = tmp_path / "plan.yaml"
    listed = "".join(f'  - "{cell}"\n' for cell in OF_OPEN)
    path.write_text(PLAIN.replace("cells:\n", f"cells:\n{listed}") + blocks)
    before = load_plan(path, SOURCES["demo"], 1, rehearsal=False)
    assert [row.name for row in unpinned(before)] == [OPEN]
    pin(path, {OPEN: SHA})
    after = load_plan(path, SOURCES["demo"], 1, rehearsal=False)
    row = catalog.ENCODERS[OPEN]
    assert after.encoders == {**before.encoders, OPEN: row.model_copy(update={"revision": SHA})}
    assert unpinned(after) == []
    assert path.read_text().startswith(PLAIN.partition("cells:")[0])
    assert plan_digest(after).rule_sha256 != plan_digest(before).rule_sha256
    assert catalog.encoder(OPEN, after.encoders).revision == SHA
    # A confirm version has the whole row in its file.
    path.write_text(yaml.safe_dump(after.model_dump(), sort_keys=False))
    assert load_plan(path, SOURCES["demo"], 1, rehearsal=False).encoders == after.encoders


def test_a_plan_that_cannot_be_added_to_stays_as_it_was_and_the_lines_to_write_are_told(tmp_path):
    path = tmp_path / "plan.yaml"
    text = PLAIN.replace("cells:\n", f'cells:\n  - "{OF_OPEN[0]}"\n') + "encoders: {}\n"
    path.write_text(text)
    with pytest.raises(InputError, match=rf"{OPEN}: {{revision: {SHA}}}"):
        pin(path, {OPEN: SHA})
    assert path.read_text() == text


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (f"  {OPEN}:\n    revision: {SHA}\n    dim: 256\n", "write its revision alone"),
        (f"  {OPEN}:\n    half: true\n", "revision: is missing"),
        (f"  {OPEN}:\n    revision: main\n", "never a branch such as main"),
        (f"  minilm-l6-v2:\n    revision: {SHA}\n", "minilm-l6-v2"),
    ],
)
def test_of_the_catalogs_own_encoder_nothing_but_an_open_commit_can_be_written(tmp_path, block, said):
    with pytest.raises(PlanError, match=said):
        loaded(tmp_path, block)
