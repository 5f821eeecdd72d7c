"""`encoders:` of plan.yaml: what is wrong is named by its line, and nothing that may be a key is repeated."""

import json
import re

import pytest

from runner.base.errors import InputError, PlanError
from runner.base.places import CHECKOUT
from runner.eval_set import catalog
from runner.eval_set.catalog import SOURCES, EncoderSpec
from runner.eval_set.plan import default_plan_text, load_plan, plan_digest
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
