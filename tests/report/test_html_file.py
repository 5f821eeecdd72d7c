"""Where a page that belongs to no record may be written, and over what."""

import os

import pytest

from runner.base.errors import BackendError, InputError
from runner.report.html_file import write_html

GENERATOR = '<meta name="generator" content="per-source-eval, {}">'


@pytest.mark.parametrize("into", ["v9/results.html", "v9/rehearsal/page.html", "link/page.html"])
def test_no_page_is_written_into_any_version_whatever_its_eval_set(tmp_path, into):
    (tmp_path / "v9" / "rehearsal").mkdir(parents=True)
    (tmp_path / "v9" / "plan.yaml").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "v9")
    path = tmp_path / into
    with pytest.raises(InputError, match="which is committed: only a run writes there"):
        write_html(path, b"a page", None)
    assert not path.exists()


def test_a_page_takes_the_place_of_another_page_of_this_tool_and_of_nothing_else(tmp_path):
    page, other = (GENERATOR.format(kind).encode() for kind in ("page template 8", "lists page"))
    path = write_html(tmp_path / "page.html", page, None)
    for content in (other, page):
        assert write_html(path, content, None).read_bytes() == content
    (tmp_path / "mine.html").write_bytes(b"mine")
    with pytest.raises(InputError, match="is no page of this tool"):
        write_html(tmp_path / "mine.html", page, None)
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(InputError, match="is no page of this tool"):
        write_html(tmp_path / "pipe.html", page, None)


def test_links_in_a_circle_are_an_input_error_with_a_way_out(tmp_path):
    (tmp_path / "loop.html").symlink_to(tmp_path / "loop.html")
    with pytest.raises(InputError, match="Give --html another place"):
        write_html(tmp_path / "loop.html", b"", None, flag="--html")


@pytest.mark.parametrize("place", ["a-file/page.html", "/dev/null/page.html", "/proc/nowhere/page.html"])
def test_a_page_that_cannot_be_written_there_is_a_backend_error(tmp_path, place):
    (tmp_path / "a-file").write_text("a file where a folder must be")
    with pytest.raises(BackendError, match="cannot be written"):
        write_html(tmp_path / place, b"a page", None)
