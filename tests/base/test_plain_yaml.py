import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.base.plain_yaml import read_yaml

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.dates() | st.text()
values = st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def refusal(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_yaml(path)
    message = str(caught.value)
    assert message.startswith(f"{path} is not YAML: ")
    assert message.isprintable()
    return message


@pytest.fixture(name="path")
def _path(tmp_path):
    return tmp_path / "plan.yaml"


@given(values)
def test_what_the_safe_loader_reads_is_read_as_it_reads_it(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("yaml") / "file.yaml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps(value, default=str)), allow_unicode=True), encoding="utf-8")
    assert read_yaml(path) == yaml.safe_load(path.read_bytes())


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"cells: [", "line 2, column 1"),
        (b"a: \x00", "position 3"),
        (b"\xff\xfe\x00", "position 2"),
        (b"a: b: c", "line 1, column 5"),
        (b"a: 1\n---\na: 2", "line 2, column 1"),
        (b"a: 2026-13-40", "1..12"),
    ],
)
def test_a_file_that_is_not_yaml_is_named_with_the_place(path, content, place):
    assert place in refusal(path, content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"pool_depth: 30\nsize: 1\npool_depth: 10", "found the key 'pool_depth' twice, line 3"),
        (b"rule:\n  a: 1\n  'a': 2", "found the key 'a' twice, line 3"),
        (b"- {a: 1,\n   b: 2, a: 3}", "found the key 'a' twice, line 2"),
        (b'"\\a": 1\n"\\x07": 2', "found the key '\\\\x07' twice"),
    ],
)
def test_a_key_twice_in_one_mapping_is_refused_with_its_line(path, content, said):
    assert said in refusal(path, content)


def test_a_key_may_stand_in_several_mappings(path):
    path.write_text("- {a: 1}\n- {a: {a: 1}}\n")
    assert read_yaml(path) == [{"a": 1}, {"a": {"a": 1}}]


@pytest.mark.parametrize(
    "content",
    [
        *(b"a: &a [1]\nb: *a", b"a: &a [*a]", b"a: &a {x: 1}\nb: {<<: *a}", b"\na: !!bool 5"),
        *(b"\na: !!python/object:os.system x", b"\na: !mine [1]"),
    ],
)
def test_an_alias_or_a_tag_is_refused_with_its_line(path, content):
    assert "found an alias or a tag where a plain value belongs" in refusal(path, content)


@pytest.mark.parametrize("content", [b"[" * 100_000, b"- " * 100_000, b"[" * 5000 + b"]" * 5000])
def test_a_file_that_nests_without_end_is_refused(path, content):
    assert "recursion" in refusal(path, content)
