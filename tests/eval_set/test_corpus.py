import gzip
import io
import random
import re
import shutil
import tarfile
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from runner.base.canonical import file_sha256, sha256
from runner.base.errors import InputError, InputNeeded
from runner.base.records import Document, Section, Span
from runner.eval_set.corpus import archive_path, archived_documents, corpus_documents, texts_to_show, write_archive
from runner.eval_set.version import Version, load_corpus, newest_version
from tests.support.small_set import draw, make_version, write_corpus, write_plans


@pytest.fixture(name="version")
def _version(tmp_path: Path) -> Version:
    version = make_version(tmp_path)
    write_plans(version)
    return version


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    return write_corpus(tmp_path / "corpus")


def documents(version: Version, folder: Path | None) -> tuple[Document, ...]:
    if folder is not None and not version.corpus_path.exists():
        draw(version, folder)
    return corpus_documents(version, folder)


def test_without_manifest_and_without_folder_the_command_that_brings_one_is_named(version):
    with pytest.raises(InputNeeded) as caught:
        documents(version, None)
    place = version.folder.parent
    assert f"per-source-eval.py run demo --eval-set-path={place}" in str(caught.value)
    assert caught.value.exit_code == 3
    assert not version.corpus_path.exists()


def test_a_draw_is_written_as_a_manifest_and_an_archive(version, folder):
    drawn = documents(version, folder)
    header, rows = load_corpus(version.corpus_path)
    assert [row.doc_id for row in rows] == [document.doc_id for document in drawn] == sorted(d.doc_id for d in drawn)
    for row, document in zip(rows, drawn, strict=True):
        assert (row.sha256, row.n_chars) == (document.sha256, len(document.text))
        assert (row.url, row.stratum, row.family) == (document.url, document.stratum, document.family)
    assert (header.n_read, header.n_documents, header.reader) == (16, 16, "bills")
    assert header.sample == version.plan().sample
    assert archive_path(version).exists()


def test_documents_come_back_from_the_archive_as_they_were_drawn(version, folder):
    drawn = documents(version, folder)
    shutil.rmtree(folder)
    assert documents(version, None) == drawn
    assert documents(version, folder) == drawn


def test_a_smaller_sample_is_drawn_from_all_that_was_read(version, folder):
    path = version.plan_path(rehearsal=False)
    path.write_text(path.read_text().replace("size: 500", "size: 9"))
    assert len(documents(version, folder)) == 9
    header, _ = load_corpus(version.corpus_path)
    assert (header.n_read, header.n_documents) == (16, 9)


def test_two_draws_and_other_input_orders_give_the_same_bytes(version, folder, tmp_path):
    documents(version, folder)
    for seed in range(3):
        other = make_version(tmp_path / f"other{seed}")
        write_plans(other)
        shuffled = tmp_path / f"shuffled{seed}"
        files = sorted(folder.iterdir())
        random.Random(seed).shuffle(files)
        for place, file in enumerate(files):
            target = shuffled / f"{seed}-{place % 3}" / file.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        documents(other, shuffled)
        assert other.corpus_path.read_bytes() == version.corpus_path.read_bytes()
        assert file_sha256(archive_path(other)) == file_sha256(archive_path(version))


def test_a_quarantined_file_is_named_in_the_manifest(version, folder):
    for n in range(60):
        source = (folder / "BILLS-117hr101ih.xml").read_text()
        (folder / f"BILLS-117hr{200 + n}ih.xml").write_text(source.replace("117 HR 101", f"117 HR {200 + n}"))
    (folder / "BILLS-117hr300ih.xml").write_text("<bill><legis-body>")
    documents(version, folder)
    (quarantined,) = load_corpus(version.corpus_path)[0].quarantined
    assert quarantined.file == "BILLS-117hr300ih.xml"
    assert "malformed XML" in quarantined.reason


@pytest.mark.parametrize("found", ["missing", "empty", "nothing but other files", "unreadable files"])
def test_a_folder_that_cannot_be_sampled_leaves_no_manifest(version, tmp_path, found):
    folder = tmp_path / "given"
    if found != "missing":
        folder.mkdir()
    if found == "nothing but other files":
        (folder / "notes.txt").write_text("x")
    if found == "unreadable files":
        (folder / "a.xml").write_text("<bill>")
    with pytest.raises(InputError, match=str(folder)):
        documents(version, folder)
    assert not version.corpus_path.exists()
    assert not archive_path(version).exists()


DAMAGE = {
    "flipped byte": lambda content: bytes([*content[:200], content[200] ^ 1, *content[201:]]),
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "another file": lambda content: b"not an archive",
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_archive_is_set_aside_and_the_folder_is_read_again(version, folder, capsys, damage):
    drawn = documents(version, folder)
    path = archive_path(version)
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[damage](whole))
    assert documents(version, folder) == drawn
    assert f"{path} is damaged and is set aside" in capsys.readouterr().err
    assert path.read_bytes() == whole
    assert path.with_suffix(".damaged").read_bytes() == DAMAGE[damage](whole)
    assert documents(version, None) == drawn


def test_without_archive_and_folder_both_ways_out_are_named(version, folder):
    documents(version, folder)
    archive_path(version).unlink()
    with pytest.raises(InputError, match=r"Copy the archive there .*, or give the folder .* --corpus-path"):
        documents(version, None)


def test_a_document_that_changed_in_the_folder_is_named(version, folder):
    documents(version, folder)
    archive_path(version).unlink()
    file = folder / "BILLS-117hr103ih.xml"
    file.write_text(file.read_text().replace("half hour", "quarter hour"))
    (folder / "BILLS-117hr109ih.xml").unlink()
    before = version.corpus_path.read_bytes()
    with pytest.raises(InputError) as caught:
        documents(version, folder)
    assert "1 missing: BILLS-117hr109ih; 1 changed: BILLS-117hr103ih" in str(caught.value)
    assert str(folder) in str(caught.value)
    assert not archive_path(version).exists()
    assert version.corpus_path.read_bytes() == before


def test_documents_that_were_added_to_the_folder_later_are_not_taken(version, folder):
    drawn = documents(version, folder)
    archive_path(version).unlink()
    text = (folder / "BILLS-117hr101ih.xml").read_text()
    (folder / "BILLS-117hr999ih.xml").write_text(text.replace("117 HR 101", "117 HR 999"))
    assert documents(version, folder) == drawn


def tarred(members: dict[str, bytes | str], folder: str = "documents") -> bytes:
    """A tar of files, and of links for the members that are a target's name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(f"{folder}/{name}.json")
            if isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
                archive.addfile(member)
            else:
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


HOSTILE = {
    "another digest": lambda _: tarred({"x": b"{}"}),
    "a path upward": lambda whole: tarred(whole, "documents/../.."),
    "a link": lambda whole: tarred(dict.fromkeys(whole, "/etc/passwd")),
    "a file too many": lambda whole: tarred({**whole, "more": b"{}"}),
    "a file too few": lambda whole: tarred(dict(list(whole.items())[1:])),
    "no document": lambda whole: tarred(dict.fromkeys(whole, b"[1]")),
    "other words": lambda whole: tarred({name: text.replace(b" the ", b" a ") for name, text in whole.items()}),
    "nested too deep": lambda whole: tarred(dict.fromkeys(whole, b"[" * 200000)),
    "a compressed tar": lambda whole: gzip.compress(tarred(whole)),
    "no tar": lambda _: b"words",
}


def test_an_archive_keeps_its_bytes_from_release_to_release(tmp_path):
    """corpus.jsonl of every version names the digest of such an archive."""
    sections = (Section(Span(0, 4), 1, "section", "Sec. 1"),)
    found = [Document("d1", "wörds", "A title", "house/119", "d", "https://example.org/d1", sections, "short")]
    sha256_then = "38f7291456f2c00777575cce00827908d1a2c6c8ca7e4b30d39c7d7880abb196"
    assert write_archive(tmp_path / "archive", found) == sha256_then


@pytest.mark.parametrize("made", HOSTILE)
def test_a_hostile_archive_is_not_taken_for_the_versions(version, folder, made):
    """Each but the first with a manifest that names its digest, as somebody would hand out who made both."""
    drawn, path = documents(version, folder), archive_path(version)
    with tarfile.open(fileobj=io.BytesIO(plain(path))) as archive:
        whole = {d.doc_id: archive.extractfile(f"documents/{d.doc_id}.json").read() for d in drawn}
    content = HOSTILE[made](whole)
    path.write_bytes(zstandard.compress(content))
    if made != "another digest":
        named = version.corpus_path.read_text().replace(
            load_corpus(version.corpus_path)[0].archive_sha256, sha256(content)
        )
        version.corpus_path.write_text(named)
    assert archived_documents(version) is None
    with pytest.raises(InputError, match="are not here"):
        corpus_documents(version, None)


@pytest.mark.parametrize("given", ["a bomb", "a bomb that the manifest vouches for", "a folder"])
def test_what_is_no_archive_is_not_taken_for_the_versions(version, folder, given):
    documents(version, folder)
    path = archive_path(version)
    if given == "a folder":
        path.unlink()
        path.mkdir()
    else:
        with path.open("wb") as file, zstandard.ZstdCompressor().stream_writer(file) as stream:
            for _ in range(400):
                stream.write(bytes(1 << 20))
        assert path.stat().st_size < 100_000
    if "vouches" in given:
        header = load_corpus(version.corpus_path)[0]
        named = version.corpus_path.read_text().replace(header.archive_sha256, sha256(bytes(400 << 20)))
        version.corpus_path.write_text(re.sub('"n_chars": ?[0-9]+', '"n_chars": 999999999999', named))
    tracemalloc.start()
    assert archived_documents(version) is None
    most_held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most_held < 64 << 20


def plain(path: Path) -> bytes:
    """What an archive unpacks to."""
    return zstandard.decompress(path.read_bytes())


def test_the_texts_of_the_embedded_corpus_are_ours_to_show():
    demo = newest_version("demo")
    shown = texts_to_show(demo)
    rows = {row.doc_id: row.sha256 for row in load_corpus(demo.corpus_path)[1]}
    assert shown is not None
    assert {doc_id: document.sha256 for doc_id, document in shown.items()} == rows


def test_one_document_from_elsewhere_keeps_all_texts_from_being_shown(version, folder):
    draw(version, folder)
    assert texts_to_show(version) is None
    ours = newest_version("demo").corpus_path.read_text(encoding="utf-8")
    version.corpus_path.write_text(ours, encoding="utf-8")
    assert texts_to_show(version) is not None
    first = load_corpus(version.corpus_path)[1][0].sha256
    version.corpus_path.write_text(ours.replace(first, first[::-1]), encoding="utf-8")
    assert texts_to_show(version) is None
