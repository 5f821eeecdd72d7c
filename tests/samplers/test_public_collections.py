import json
import stat
import zipfile

import pytest

from runner.base.canonical import file_sha256, sha256
from runner.base.errors import BackendError, InputError
from runner.commands.main import main
from samplers.feeds.endpoints import Refused
from samplers.feeds.public_collections import RECORD, FetchPlan, fetch_collection, import_collection
from samplers.sources.beir import read_collection
from tests.support.feed_server import FakeClock, Site, as_zip
from tests.support.loopback import Wire, as_json, served
from tests.support.small_collection import documents, qrels, write_collection

SHA = "ab" * 20
JUDGED = [(query_id, doc_id, grade) for query_id, grades in qrels().items() for doc_id, grade in grades.items()]


def queries(folder):
    return [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]


def same(one, other):
    """Whether two folders are one collection, read as the evening reads them."""
    found, wanted = (read_collection(folder, title_fits=lambda _: True) for folder in (one, other))
    assert found.documents == wanted.documents
    assert (found.queries, found.qrels) == (wanted.queries, wanted.qrels)


def dataset(folder, original):
    """The collection as Hugging Face's hub has it: Parquet in shards, a folder a part."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # half a second, which slow tests alone need

    rows = documents()
    parts = {
        "corpus/corpus-00000-of-00002.parquet": rows[:7],
        "corpus/corpus-00001-of-00002.parquet": rows[7:],
        "queries/queries-00000-of-00001.parquet": queries(original),
        "default/test-00000-of-00001.parquet": [
            {"query-id": query_id, "corpus-id": doc_id, "score": float(grade)} for query_id, doc_id, grade in JUDGED
        ],
        "default/train-00000-of-00001.parquet": [{"query-id": "q1", "corpus-id": "gone", "score": 1.0}],
    }
    for name, table in parts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(table), path)
    (folder / "README.md").write_text("# not read")
    return folder


@pytest.fixture(name="original")
def _original(tmp_path):
    return write_collection(tmp_path / "original")


def archive(original, name="tiny"):
    """BEIR's archive of a collection: everything inside a folder of its name."""
    lines = "".join(f"{query_id}\t{doc_id}\t{grade}\n" for query_id, doc_id, grade in JUDGED)
    return {
        f"{name}/corpus.jsonl": (original / "corpus.jsonl").read_bytes(),
        f"{name}/queries.jsonl": (original / "queries.jsonl").read_bytes(),
        f"{name}/qrels/test.tsv": b"query-id\tcorpus-id\tscore\n" + lines.encode(),
        f"{name}/qrels/train.tsv": b"query-id\tcorpus-id\tscore\nq1\tgone\t1\n",
    }


@pytest.mark.slow
def test_a_folder_of_parquet_is_the_collection_it_was_made_from(tmp_path, original):
    done = import_collection(dataset(tmp_path / "hub", original), tmp_path / "made", "test")
    assert (done.documents, done.queries, done.pairs, done.files) == (
        len(documents()),
        len(queries(original)),
        len(JUDGED),
        4,
    )
    same(tmp_path / "made", original)
    record = json.loads((tmp_path / "made" / RECORD).read_text())
    assert record["read"] == {
        path.relative_to(tmp_path / "hub").as_posix(): file_sha256(path)
        for path in (tmp_path / "hub").rglob("*.parquet")
        if "train" not in path.name
    }
    assert record["written"]["corpus"] == file_sha256(tmp_path / "made" / "corpus.jsonl")


def test_ids_that_are_numbers_and_titles_that_are_missing_are_taken(tmp_path):
    folder = tmp_path / "hub"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"id": 7, "title": null, "text": "frost"}\n{"_id": "8", "text": "bus"}\n')
    (folder / "queries.jsonl").write_text('{"_id": 1, "text": "ice"}\n\n{"_id": 2, "text": "road"}\n')
    (folder / "qrels" / "dev.jsonl").write_text(
        '{"query-id": 1, "corpus-id": 7, "score": 1.0}\n{"query-id": 2, "corpus-id": "8", "score": "2"}\n'
    )
    import_collection(folder, tmp_path / "made", "dev")
    found = read_collection(tmp_path / "made", title_fits=lambda _: True)
    assert (found.qrels, found.split) == ({"1": {"7": 1}, "2": {"8": 2}}, "qrels.tsv")


@pytest.mark.parametrize(
    ("name", "content", "place"),
    [
        ("corpus.jsonl", '{"_id": "a b", "text": "x"}', "corpus.jsonl:1"),
        ("corpus.jsonl", '{"_id": "a", "text": 3}', "corpus.jsonl:1"),
        ("corpus.jsonl", "[]", "corpus.jsonl:1"),
        ("queries.jsonl", "{", "queries.jsonl:1"),
        ("qrels/test.tsv", "q1\td1\n", "qrels/test.tsv:1"),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n", "no row"),
        ("corpus/corpus-00000-of-00001.parquet", "PAR1 no", "no Parquet"),
    ],
)
def test_a_row_that_is_none_is_named_and_nothing_is_written(tmp_path, original, name, content, place):
    (original / "qrels.tsv").unlink()
    for path, held in archive(original, "c").items():
        (original / path.removeprefix("c/")).parent.mkdir(exist_ok=True)
        (original / path.removeprefix("c/")).write_bytes(held)
    (original / name).parent.mkdir(exist_ok=True)
    (original / name).write_text(content)
    with pytest.raises(InputError, match=place):
        import_collection(original, tmp_path / "made", "test")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["original"]


def hostile(path, original, how):
    """An archive with one member that must never be written or followed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        members = archive(original)
        bad = members.pop("tiny/corpus.jsonl")
        for name, content in members.items():
            file.writestr(name, content)
        if how == "leads out":
            file.writestr("../corpus.jsonl", bad)
        elif how == "link":
            link = zipfile.ZipInfo("tiny/corpus.jsonl")
            link.external_attr = (stat.S_IFLNK | 0o777) << 16
            file.writestr(link, "/etc/passwd")
        else:
            file.writestr("tiny/corpus.jsonl", b" " * 5_000_000)
    return path


@pytest.mark.parametrize("how", ["leads out", "link", "expands"])
def test_a_hostile_archive_writes_nothing_anywhere(tmp_path, original, how):
    path = hostile(tmp_path / "bad.zip", original, how)
    with pytest.raises(InputError, match=how):
        import_collection(path, tmp_path / "made", "test")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.zip", "original"]


def test_a_link_out_of_a_folder_is_not_followed(tmp_path, original):
    secret = tmp_path / "secret.jsonl"
    secret.write_text((original / "corpus.jsonl").read_text())
    (original / "corpus.jsonl").unlink()
    (original / "corpus.jsonl").symlink_to(secret)
    with pytest.raises(InputError, match="no corpus"):
        import_collection(original, tmp_path / "made", "test")


@pytest.fixture(name="hub")
def _hub():
    with served(Site()) as site:
        yield site


@pytest.fixture(name="files")
def _files():
    with served(Site()) as site:
        yield site


def fetch(name, to, mirrors, **more):
    return fetch_collection(name, to, FetchPlan(mirrors=mirrors, **more), to.parent / "cache", print, FakeClock())


@pytest.mark.slow
def test_an_archive_of_beir_is_fetched_and_its_digests_are_kept(tmp_path, original, hub, monkeypatch, capsys):
    members = archive(original)
    hub.at("/thakur/BEIR/datasets/tiny.zip", as_zip(members))
    monkeypatch.setenv("PER_SOURCE_EVAL_CACHE", str(tmp_path / "cache"))
    to = tmp_path / "made"
    assert main(["collection", "fetch", "tiny", "--to", str(to), "--endpoint", f"beir={hub.url}"]) == 0
    assert "run beir --corpus-path" in capsys.readouterr().out
    same(to, original)
    record = json.loads((to / RECORD).read_text())
    assert record["url"] == "https://public.ukp.informatik.tu-darmstadt.de/thakur/BEIR/datasets/tiny.zip"
    assert record["read"]["tiny/corpus.jsonl"] == sha256(members["tiny/corpus.jsonl"])
    assert main(["collection", "fetch", "tiny", "--to", str(to), "--endpoint", f"beir={hub.url}"]) == 2
    assert hub.paths == ["/thakur/BEIR/datasets/tiny.zip"]


def test_what_cannot_be_had_leaves_no_folder(tmp_path, hub):
    hub.at("/thakur/BEIR/datasets/page.zip", Wire(b"<html></html>", type="text/html"))
    hub.at("/thakur/BEIR/datasets/large.zip", Wire(b"PK" + b"x" * 1_000_000, type="application/zip"))
    for name in ("missing", "page", "large"):
        with pytest.raises(BackendError):
            fetch(name, tmp_path / "made", {"beir": hub.url}, max_mb=1)
    for name in ("../tiny", "Tiny", "a/b/c", "https://x", "a/.."):
        with pytest.raises(InputError):
            fetch(name, tmp_path / "made", {"beir": hub.url, "huggingface": hub.url})
    assert not (tmp_path / "made").exists()


def moved(url):
    return Wire(status=302, headers=(("Location", url),))


def serve(hub, files, name, folder, *, keep=lambda path: True):
    """A dataset of a folder: the listing at a commit, and each file behind a redirect to another host."""
    paths = [path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file()]
    listed = [{"rfilename": path} for path in paths if keep(path)]
    hub.at(f"/api/datasets/{name}", as_json({"sha": SHA, "siblings": [*listed, {"rfilename": "../../evil.parquet"}]}))
    for path in paths:
        hub.at(f"/datasets/{name}/resolve/{SHA}/{path}", moved(f"{files.url}/{path}?Signature=a%2Bb~c"))
        files.at(f"/{path}", Wire((folder / path).read_bytes(), type="binary/octet-stream"))


@pytest.mark.slow
def test_a_dataset_is_fetched_at_its_commit_from_where_the_hub_keeps_files(tmp_path, original, hub, files):
    serve(hub, files, "mteb/tiny", dataset(tmp_path / "hub", original))
    fetch("mteb/tiny", tmp_path / "made", {"huggingface": hub.url, "cdn-lfs.hf.co": files.url})
    same(tmp_path / "made", original)
    record = json.loads((tmp_path / "made" / RECORD).read_text())
    assert (record["name"], record["revision"], len(record["read"])) == ("mteb/tiny", SHA, 4)
    assert all("README" not in path and "evil" not in path and "train" not in path for path in files.paths + hub.paths)


@pytest.mark.slow
def test_judgments_may_lie_in_a_dataset_beside_it(tmp_path, original, hub, files):
    folder = dataset(tmp_path / "hub", original)
    serve(hub, files, "BeIR/tiny", folder, keep=lambda path: not path.startswith("default"))
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "test.tsv").write_bytes(archive(original)["tiny/qrels/test.tsv"])
    serve(hub, files, "BeIR/tiny-qrels", tmp_path / "beside")
    fetch("BeIR/tiny", tmp_path / "made", {"huggingface": hub.url, "cdn-lfs.hf.co": files.url})
    same(tmp_path / "made", original)


@pytest.mark.slow
def test_a_redirect_to_anywhere_else_is_refused(tmp_path, original, hub, files):
    serve(hub, files, "mteb/tiny", dataset(tmp_path / "hub", original))
    with pytest.raises(Refused):
        fetch("mteb/tiny", tmp_path / "made", {"huggingface": hub.url})
    assert files.paths == []
