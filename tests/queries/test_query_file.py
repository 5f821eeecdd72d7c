import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runner.base.errors import InputError
from runner.eval_set.shapes.queries import QueryRow
from runner.queries.additions import add_queries
from runner.queries.query_file import (
    MOST_QUERIES,
    append_queries,
    count_line,
    fresh_ids,
    quoted,
    read_queries,
    shown,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(lambda text: re.search(r"\S", text))


def row(text="which ferry runs in winter", **more):
    return QueryRow(**{"id": "q01", "text": text, "kind": "topic", "origin": "person", **more})


def write(path, *texts, **more):
    rows = [row(text, id=f"x{n}", **more).model_dump() for n, text in enumerate(texts)]
    path.write_text(yaml.safe_dump({"schema_version": 1, "queries": rows}, sort_keys=False), encoding="utf-8")
    return path


@given(TEXT)
def test_any_text_comes_back_from_its_scalar(text):
    written = quoted(text)
    assert written.isprintable()
    assert yaml.safe_load(written) == text


@given(st.lists(st.builds(row, TEXT, kind=TEXT, note=st.text(st.characters(exclude_categories=["Cs"]))), max_size=3))
def test_rows_come_back_from_the_file_that_they_were_put_into(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("set") / "queries.yaml"
    rows = [each.model_copy(update={"id": f"x{place}"}) for place, each in enumerate(rows)]
    append_queries(path, rows[:1], "demo v1")
    append_queries(path, rows[1:], "demo v1")
    assert (read_queries(path) if path.exists() else []) == rows


HEAD = "schema_version: 1\nqueries:\n"
STYLES = {
    "indented": f"# mine\n{HEAD}  # first\n  - id: a\n    text: one two\n    kind: topic\n    origin: person\n",
    "flush": f"{HEAD}- id: a\n  text: one two\n  kind: topic\n  origin: person\n",
    "deep": f"{HEAD}      - {{id: a, text: one two, kind: topic, origin: person}}\n",
    "no newline": f"{HEAD}  - id: a\n    text: one two\n    kind: topic\n    origin: person",
    "comment last": f"{HEAD}  - {{id: a, text: one two, kind: topic, origin: person}}\n# end\n",
    "dash in a block": f"{HEAD}  - id: a\n    text: |\n      - not an item\n    kind: t\n    origin: person\n",
}


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "byte order mark"])
def test_every_byte_that_was_there_is_kept(tmp_path, style, newline, mark):
    path = tmp_path / "queries.yaml"
    before = mark + STYLES[style].replace("\n", newline).encode()
    path.write_bytes(before)
    append_queries(path, [row('what "is"\tit: {new}?')], "demo v1")
    after = path.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == after.count(newline.encode())
    assert [one.id for one in read_queries(path)] == ["a", "q01"]


@pytest.mark.parametrize(
    "content",
    [
        "queries: []\nschema_version: 1\n",
        "queries:\n  - {id: a, text: one two, kind: topic, origin: person}\nschema_version: 1\n",
        "schema_version: 1\nqueries: [{id: a, text: one two, kind: topic, origin: person}]\n",
        '{"schema_version": 1, "queries": []}\n',
        "schema_version: 1\nqueries:\n  - {id: a, text: one two, kind: topic, origin: person}\n...\n",
    ],
)
def test_a_list_that_nothing_can_be_put_after_is_said_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "queries.yaml"
    path.write_text(content)
    with pytest.raises(InputError, match="nothing can be put at the end of its list"):
        append_queries(path, [row()], "demo v1")
    assert path.read_text() == content
    assert [one.name for one in tmp_path.iterdir()] == ["queries.yaml"]


def test_a_long_text_is_shown_as_written_and_cut_with_an_ellipsis():
    assert shown("Ferry TO the \x1b harbor") == "Ferry TO the \\x1b harbor"
    assert shown("Word " * 40, 12) == "Word Word W\u2026"
    assert len(shown("x" * 500)) == 80


def test_ids_go_on_after_the_highest():
    assert fresh_ids("q", [], 2) == ["q01", "q02"]
    assert fresh_ids("q", ["q09", "hand", "q2x", "x99"], 2) == ["q10", "q11"]
    assert fresh_ids("q", ["q99"], 1) == ["q100"]


def test_the_count_names_origins():
    assert count_line([]) == "no queries"
    assert count_line([row(), row(origin="claude"), row()]) == "3 queries (2 person, 1 claude)"
    mixed = [row(origin=origin) for origin in ("harvested", "claude", "person", "gpt-oss:120b", "claude")]
    assert count_line(mixed) == "5 queries (1 person, 2 claude, 1 gpt-oss:120b, 1 harvested)"


def test_a_huge_file_is_refused(tmp_path):
    path = tmp_path / "huge.yaml"
    lines = (f"- {{id: q{n}, text: t{n}, kind: topic, origin: person}}\n" for n in range(MOST_QUERIES + 1))
    path.write_text("schema_version: 1\nqueries:\n" + "".join(lines))
    with pytest.raises(InputError, match="Split the file"):
        read_queries(path)


def test_an_id_that_stands_twice_is_refused(tmp_path):
    path = write(tmp_path / "twice.yaml", "one", "two")
    path.write_text(path.read_text().replace("x1", "x0"))
    with pytest.raises(InputError, match="has the id x0 twice"):
        read_queries(path)


def test_added_queries_get_ids_of_their_own_and_the_count_is_told(version, tmp_path):
    before = version.queries_path.read_bytes()
    path = write(tmp_path / "more.yaml", "zeppelin moorings in fog", "licence for a lighthouse dog")
    said = add_queries(version, path)
    assert "2 queries added as q26 to q27" in said
    assert "27 queries (14 person, 13 claude)" in said
    assert version.queries_path.read_bytes().startswith(before)
    assert [one.id for one in read_queries(version.queries_path)[-2:]] == ["q26", "q27"]


def test_adding_begins_the_file_and_says_how_many_are_needed(version, tmp_path):
    version.queries_path.unlink()
    said = add_queries(version, write(tmp_path / "more.yaml", "zeppelin moorings in fog"))
    assert said.endswith("has 1 query (1 person); 24 more are needed")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (("zeppelin moorings", "Zeppelin   MOORINGS"), "say the same"),
        (("Loans for growers of apples and cherries, after frost!",), "say the same"),
        (("the zeppelin moorings in a fog", "moorings in fog, the zeppelin a"), "say the same"),
    ],
)
def test_repeats_are_refused_and_nothing_is_added(version, tmp_path, texts, said):
    before = version.queries_path.read_bytes()
    with pytest.raises(InputError, match=said) as refused:
        add_queries(version, write(tmp_path / "more.yaml", *texts))
    assert str(refused.value).splitlines()[-1].startswith("Nothing was added.")
    assert version.queries_path.read_bytes() == before


def test_frozen_queries_take_no_more(version, tmp_path):
    path = write(tmp_path / "more.yaml", "zeppelin moorings in fog")
    for frozen in (version.preregistration_path, version.labels_path, version.folder / "decision.json"):
        frozen.write_text("{}\n")
        with pytest.raises(InputError, match="are frozen"):
            add_queries(version, path)
        frozen.unlink()
    version.labels_path.write_text("")
    add_queries(version, path)


def test_a_file_without_queries_or_the_version_s_own_is_refused(version, tmp_path):
    with pytest.raises(InputError, match="has no queries"):
        add_queries(version, write(tmp_path / "none.yaml"))
    with pytest.raises(InputError, match="own file"):
        add_queries(version, version.queries_path)
    with pytest.raises(InputError, match="does not exist"):
        add_queries(version, tmp_path / "gone.yaml")


CSV = """ID,Query,Document,Paraphrased,Origin,Kind
law9,"who pays, and when",d1,,,
law7,price of a berth,d2,cost of mooring,claude,amount
"""


def test_queries_of_a_table_keep_their_ids_and_are_a_persons_topics_unless_it_says_otherwise(version, tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    first, second = read_queries(path)
    path.write_text(CSV.replace("d1", "BILLS-117hr101ih").replace("d2", ""))
    assert first == row("who pays, and when", id="law9", source_document="d1")
    assert (second.wordings, second.kind, second.origin) == (
        {"plain": "price of a berth", "paraphrased": "cost of mooring"},
        *("amount", "claude"),
    )
    version.queries_path.unlink(missing_ok=True)
    assert "2 queries added as law9 to law7" in add_queries(version, path)
    # An id that the version has makes all of them count on.
    path.write_text("id,query\nlaw9,where do boats winter\nlaw1,what is a quay\n")
    assert "2 queries added as q01 to q02" in add_queries(version, path)


@pytest.mark.parametrize("suffix", ["csv", "yaml"])
def test_a_document_is_named_by_path_too_and_one_outside_of_the_sample_is_refused(version, tmp_path, suffix):
    before, path = version.queries_path.read_bytes(), tmp_path / f"mine.{suffix}"
    documents = ["BILLS-117hr101ih.md", "./BILLS-117hr101ih", "", *(f"acts/x{n}.md" for n in range(22))]

    def asking(named):
        if suffix == "yaml":
            rows = [row(f"word{n}", id=f"x{n}", source_document=name) for n, name in enumerate(named)]
            path.write_text(yaml.safe_dump({"schema_version": 1, "queries": [each.model_dump() for each in rows]}))
        else:
            path.write_text("".join(["id,query,document\n", *(f"x{n},word{n},{d}\n" for n, d in enumerate(named))]))
        return path

    with pytest.raises(InputError) as refused:
        add_queries(version, asking(documents))
    first, *_, more, what_next = lines = str(refused.value).split("\n")
    assert (len(lines), more, version.queries_path.read_bytes()) == (22, "and 2 more rows", before)
    assert first.startswith(f"{path}: x3: no document 'acts/x0.md'")
    assert what_next.startswith("Nothing was added.")
    two = tmp_path / "two.csv"
    two.write_text("query,document\nmoor,acts/x0.md\nquay,\nQuay,\n")
    with pytest.raises(InputError, match=r"no document 'acts/x0.md'.*\n.* say the same"):
        add_queries(version, two)
    add_queries(version, asking(documents[:3]))
    added = read_queries(version.queries_path)[-3:]
    assert [each.source_document for each in added] == ["BILLS-117hr101ih", "BILLS-117hr101ih", ""]


def test_every_wrong_row_of_a_table_of_queries_is_named_by_its_number(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("id,query,origin\na,who,\na,what,\nb,,\nc d,when,\ne,why,a model\n")
    with pytest.raises(InputError) as caught:
        read_queries(path)
    assert [line.partition(".csv:")[2].partition(":")[0] for line in str(caught.value).split("\n")] == [*"3456"]
    assert "the id a is that of row 2 too" in str(caught.value)
