"""HTTP as feeds use it, against a loopback server."""

import socket
import time
from datetime import timedelta
from email.utils import format_datetime

import pytest

from runner import __version__
from runner.base.errors import BackendError, InputError
from samplers.feeds.client import LONGEST_ANSWER, LONGEST_WAIT, MAX_REDIRECTS, Client, Clock
from samplers.feeds.endpoints import ENDPOINTS, Endpoints, Refused
from tests.support.feed_server import FakeClock, Reply, Site, as_htm, as_json, as_xml, as_zip, served

GOVINFO = "https://www.govinfo.gov"
API = "https://api.govinfo.gov"
XML = b'<?xml version="1.0"?><bill><title>Ferries</title></bill>'
KEY = "k3y-of-nobody"


@pytest.fixture(name="site")
def _site():
    with served(Site()) as site:
        yield site


@pytest.fixture(name="clock")
def _clock():
    return FakeClock()


@pytest.fixture(name="client")
def _client(site, clock, tmp_path):
    endpoints = Endpoints({"govinfo": site.origin})
    with Client(endpoints, 1000.0, tmp_path / "cache", clock, print) as client:
        yield client


@pytest.fixture(name="keyed")
def _keyed(site, clock, tmp_path, monkeypatch):
    monkeypatch.setenv("PER_SOURCE_EVAL_GOVINFO_KEY", KEY)
    with Client(Endpoints({"govinfo-api": site.origin}), 1000.0, tmp_path / "cache", clock, print) as client:
        yield client


def get(client, path="/a.xml", kind="xml", limit=10_000):
    return client.file(GOVINFO + path, kind, limit)


def test_a_file_comes_with_its_validators(site, client):
    site.at("/a.xml", as_xml(XML, headers=(("ETag", '"7"'), ("Last-Modified", "Mon, 02 Nov 2026 10:00:00 GMT"))))
    assert get(client) == (XML, '"7"', "Mon, 02 Nov 2026 10:00:00 GMT")


def test_requests_name_the_tool_and_its_version_and_say_what_they_accept(site, client):
    site.at("/a.xml", as_xml(XML))
    site.at("/list", as_json({}))
    get(client)
    client.json(GOVINFO + "/list")
    (_, file_headers), (_, list_headers) = site.log
    assert file_headers["user-agent"].startswith(f"per-source-eval/{__version__}")
    assert "application/xml" in file_headers["accept"]
    assert list_headers["accept"] == "application/json"


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_after_growing_waits(site, client, clock, status):
    site.at("/a.xml", Reply(status=status), Reply(status=status), as_xml(XML))
    assert get(client).data == XML
    assert len(clock.waits) == 2
    assert 1 <= clock.waits[0] <= 2 <= clock.waits[1] <= 3


def test_a_server_that_stays_busy_ends_the_run_after_so_many_attempts(site, client):
    site.at("/a.xml", Reply(status=503))
    with pytest.raises(BackendError, match="HTTP 503, 6 times") as caught:
        get(client)
    assert not isinstance(caught.value, Refused)
    assert len(site.log) == 6


def test_a_wait_that_the_server_asks_for_in_seconds_is_kept(site, client, clock):
    site.at("/a.xml", Reply(status=429, headers=(("Retry-After", "17"),)), as_xml(XML))
    get(client)
    assert clock.waits == [17]


def test_a_wait_that_the_server_asks_for_as_a_date_is_kept(site, client, clock):
    when = format_datetime(clock.utc() + timedelta(seconds=40), usegmt=True)
    site.at("/a.xml", Reply(status=503, headers=(("Retry-After", when),)), as_xml(XML))
    get(client)
    assert clock.waits == [40]


def test_a_wait_is_announced_without_the_query(site, client, capsys):
    site.at("/a.xml", Reply(status=429, headers=(("Retry-After", "17"),)), as_xml(XML))
    get(client, "/a.xml?n=1")
    assert capsys.readouterr().out == "https://www.govinfo.gov/a.xml: HTTP 429; asking again in 17 seconds\n"


def test_a_date_that_has_passed_is_no_wait(site, client, clock):
    when = format_datetime(clock.utc() - timedelta(hours=1), usegmt=True)
    site.at("/a.xml", Reply(status=503, headers=(("Retry-After", when),)), as_xml(XML))
    get(client)
    assert not clock.waits


@pytest.mark.parametrize("header", ["soon", "-5", "Mon, 99 Nov 2026", "1e9", "٣", ""])
def test_a_wait_that_says_nothing_falls_back_to_growing_waits(site, client, clock, header):
    headers = (("Retry-After", header.encode().decode("latin-1")),)
    site.at("/a.xml", Reply(status=503, headers=headers), as_xml(XML))
    get(client)
    assert len(clock.waits) == 1
    assert 1 <= clock.waits[0] <= 2


def test_a_longer_wait_than_anybody_watches_ends_the_run_and_says_how_long(site, client, clock):
    site.at("/a.xml", Reply(status=429, headers=(("Retry-After", str(int(LONGEST_WAIT) + 1)),)))
    with pytest.raises(BackendError, match="asks to wait 301 seconds"):
        get(client)
    assert len(site.log) == 1
    assert not clock.waits


def test_a_body_that_ends_before_its_declared_length_is_asked_for_again(site, client):
    site.at("/a.xml", as_xml(XML, cut=20), as_xml(XML))
    assert get(client).data == XML
    assert len(site.log) == 2


def test_a_body_without_a_declared_length_that_ends_early_is_noticed(site, client):
    site.at("/a.xml", as_xml(XML[:-7], framed=False), as_xml(XML, framed=False))
    assert get(client).data == XML
    assert len(site.log) == 2


def test_a_body_that_is_cut_every_time_is_refused(site, client):
    site.at("/a.xml", as_xml(XML[:-7], framed=False))
    with pytest.raises(Refused, match="ends without </bill>, 6 times"):
        get(client)


def test_a_printed_text_has_its_last_tag(site, client):
    site.at("/a.htm", as_htm("MINUTES"), Reply(b"<html><body><pre>\nMINU", type="text/html", framed=False))
    assert b"MINUTES" in get(client, "/a.htm", "htm").data
    with pytest.raises(Refused, match="ends without </html>"):
        get(client, "/a.htm", "htm")


def test_a_page_about_something_else_is_no_printed_text(site, client):
    site.at("/a.htm", Reply(b"<html><body><h1>Sorry</h1></body></html>", type="text/html"))
    with pytest.raises(Refused, match="no printed text"):
        get(client, "/a.htm", "htm")


def test_an_html_page_where_xml_is_due_is_refused_at_once(site, client):
    site.at("/a.xml", Reply(b"<!DOCTYPE html><html><body>Service Error</body></html>", type="text/html; charset=utf-8"))
    with pytest.raises(Refused, match="an HTML page where XML is due"):
        get(client)
    assert len(site.log) == 1


def test_an_html_page_that_calls_itself_xml_is_refused(site, client):
    site.at("/a.xml", as_xml(b"<html><body>Service Error</body></html>"))
    with pytest.raises(Refused, match="an HTML page where XML is due"):
        get(client)


@pytest.mark.parametrize(
    "data",
    [
        b'<?xml version="1.0"?><bill xmlns:html="h"><html:table/></bill>',
        b"<!--<?xml version='1.0'?><html>--><bill>1</bill><!-- end -->",
        b'<?xml version="1.0"?>\n<!DOCTYPE bill PUBLIC "-//X//bill.dtd//EN" "bill.dtd">\n<bill>1</bill>\n',
        b'\xef\xbb\xbf<ns3:uscDoc xmlns:ns3="u">1</ns3:uscDoc>',
        b"<RULE/>",
    ],
)
def test_xml_with_tables_comments_and_prologs_of_every_kind_is_taken(site, client, data):
    site.at("/a.xml", as_xml(data))
    assert get(client).data == data


def test_a_zip_is_a_zip(site, client):
    site.at("/a.zip", as_zip({"a.xml": XML}), Reply(b"not one", type="application/zip"))
    assert get(client, "/a.zip", "zip").data.startswith(b"PK")
    with pytest.raises(Refused, match="something else where a ZIP is due"):
        get(client, "/a.zip", "zip")


@pytest.mark.parametrize("declared", ["", "application/octet-stream", "text/plain"])
def test_a_type_that_says_nothing_leaves_it_to_the_content(site, client, declared):
    site.at("/a.xml", Reply(XML, type=declared))
    assert get(client).data == XML


def test_utf_16_is_looked_at_as_text(site, client):
    data = XML.decode().encode("utf-16")
    site.at("/a.xml", as_xml(data))
    assert get(client).data == data


def test_a_file_that_declares_too_much_is_refused_before_it_is_read(site, client):
    site.at("/a.xml", as_xml(b"<a>" + b" " * 20_000 + b"</a>"))
    with pytest.raises(Refused, match="more than 10,000 bytes"):
        get(client)


def test_a_file_that_grows_past_the_limit_is_refused(site, client):
    site.at("/a.xml", as_xml(b"<a>" + b" " * 200_000 + b"</a>", framed=False))
    with pytest.raises(Refused, match="more than 10,000 bytes"):
        get(client)


@pytest.mark.parametrize("slow", ["head", "body"])
def test_an_answer_that_drips_for_ever_is_given_up_and_the_next_one_comes(site, tmp_path, monkeypatch, slow):
    monkeypatch.setattr("samplers.feeds.client.LONGEST_ANSWER", 0.3)
    site.at("/a.xml", as_xml(XML, slow=slow))
    site.at("/b.xml", as_xml(XML))
    site.at("/list", as_json({}, slow=slow))
    with Client(Endpoints({"govinfo": site.origin}), 1000.0, tmp_path, Clock(), print) as client:
        assert get(client, "/b.xml").data == XML
        with pytest.raises(BackendError, match="no whole answer in the time that one may take, once"):
            get(client)
        with pytest.raises(BackendError, match="no whole answer in the time that one may take, once"):
            client.json(GOVINFO + "/list")
        assert get(client, "/b.xml").data == XML


def test_a_connection_that_opens_after_the_deadline_is_of_no_use(site, tmp_path, monkeypatch):
    monkeypatch.setattr("samplers.feeds.client.LONGEST_ANSWER", 0.1)
    resolved = socket.getaddrinfo
    monkeypatch.setattr("socket.getaddrinfo", lambda *given, **named: time.sleep(0.3) or resolved(*given, **named))
    site.at("/a.xml", as_xml(XML, slow="head"))
    with (
        Client(Endpoints({"govinfo": site.origin}), 1000.0, tmp_path, Clock(), print) as client,
        pytest.raises(BackendError, match="no whole answer in the time"),
    ):
        get(client)


def test_all_attempts_at_an_answer_share_one_deadline(site, client, clock):
    site.at("/a.xml", Reply(status=503, headers=(("Retry-After", "280"),)))
    with pytest.raises(BackendError, match="HTTP 503, 4 times"):
        get(client)
    assert clock.waits == [280, 280, 280]
    assert sum(clock.waits) < LONGEST_ANSWER


def test_a_host_whose_name_leads_nowhere_is_asked_for_twice(tmp_path, clock, monkeypatch):
    asked = []

    def unresolved(host, *_, **__):
        asked.append(host)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr("socket.getaddrinfo", unresolved)
    with (
        Client(Endpoints({}), 1000.0, tmp_path, clock, print) as client,
        pytest.raises(BackendError, match=r"Temporary failure in name resolution\), 2 times"),
    ):
        get(client)
    assert asked == ["www.govinfo.gov"] * 2


def test_nobody_listening_ends_the_run(tmp_path, clock):
    with served(Site()) as gone:
        origin = gone.origin
    with (
        Client(Endpoints({"govinfo": origin}), 1000.0, tmp_path, clock, print) as client,
        pytest.raises(BackendError, match=r"the connection failed \(.*refused\), 6 times"),
    ):
        get(client)


def test_a_compression_that_was_not_asked_for_is_refused(site, client):
    site.at("/a.xml", as_xml(XML, headers=(("Content-Encoding", "zstd"),)))
    with pytest.raises(Refused, match="compressed"):
        get(client)


def test_a_file_that_is_gone_is_refused_by_name(site, client):
    with pytest.raises(Refused, match=r"https://www.govinfo.gov/a.xml: HTTP 404"):
        get(client)
    assert len(site.log) == 1


def test_a_redirect_on_the_same_host_is_followed(site, client):
    site.at("/a.xml", Reply(status=302, headers=(("Location", "/b.xml"),)))
    site.at("/b.xml", as_xml(XML))
    assert get(client).data == XML


def test_a_redirect_to_the_official_name_stays_with_the_mirror(site, client):
    site.at("/a.xml", Reply(status=301, headers=(("Location", "http://www.govinfo.gov/b.xml"),)))
    site.at("/b.xml", as_xml(XML))
    assert get(client).data == XML


@pytest.mark.parametrize(
    "location",
    [
        "https://unblock.federalregister.gov/",
        "http://127.0.0.1:9/b.xml",
        "ftp://www.govinfo.gov/b.xml",
        "//evil.example/b.xml",
        "https://www.govinfo.gov@evil.example/",
        "file:///etc/passwd",
    ],
)
def test_a_redirect_elsewhere_is_refused(site, client, location):
    site.at("/a.xml", Reply(status=302, headers=(("Location", location),)))
    with pytest.raises(Refused, match="none of those that this feed may reach"):
        get(client)


def test_a_redirect_to_another_service_is_refused(site, client):
    site.at("/a.xml", Reply(status=302, headers=(("Location", "https://www.ecfr.gov/b.xml"),)))
    with pytest.raises(Refused, match="another host"):
        get(client)


@pytest.mark.parametrize("location", ["http://[::1", "https://www.govinfo.gov:x/"])
def test_a_following_page_that_is_no_address_is_refused(location):
    with pytest.raises(Refused, match="none of those that this feed may reach"):
        Endpoints({}).followed(GOVINFO + "/a", location)


def test_a_redirect_in_circles_ends(site, client):
    site.at("/a.xml", Reply(status=302, headers=(("Location", "/a.xml"),)))
    with pytest.raises(Refused, match="redirected more than"):
        get(client)
    assert len(site.log) == MAX_REDIRECTS + 1


def test_a_listing_that_is_not_json_is_asked_for_again(site, client):
    site.at("/list", Reply(b'{"files": ['), as_json({"files": []}))
    assert client.json(GOVINFO + "/list") == {"files": []}


def test_a_listing_that_is_never_json_is_refused(site, client):
    site.at("/list", Reply(b"[" * 100_000))
    with pytest.raises(Refused, match="not JSON, 6 times"):
        client.json(GOVINFO + "/list")


def test_a_listing_asked_for_without_its_type_would_be_406(site, client):
    site.at("/list", Reply(status=406))
    with pytest.raises(Refused, match="HTTP 406"):
        client.json(GOVINFO + "/list")


def test_a_listing_that_is_unchanged_is_not_sent_twice(site, client, tmp_path, clock):
    site.at("/list", as_json({"files": [1]}, headers=(("ETag", '"1"'),)))
    assert client.json(GOVINFO + "/list") == {"files": [1]}
    with Client(Endpoints({"govinfo": site.origin}), 1000.0, tmp_path / "cache", clock, print) as later:
        assert later.json(GOVINFO + "/list") == {"files": [1]}
    assert site.log[1][1]["if-none-match"] == '"1"'


def test_a_listing_that_changed_is_taken_anew_even_if_it_was_called_fresh(site, client):
    fresh = ("Cache-Control", "max-age=86400")
    site.at(
        "/list",
        as_json({"files": [1]}, headers=(("ETag", '"1"'), fresh)),
        as_json({"files": [1, 2]}, headers=(("ETag", '"2"'), fresh)),
    )
    assert client.json(GOVINFO + "/list") == {"files": [1]}
    assert client.json(GOVINFO + "/list") == {"files": [1, 2]}


def test_a_damaged_entry_of_the_cache_does_not_come_back(site, client):
    site.at("/list", Reply(b"{", headers=(("ETag", '"1"'),)), as_json({}, headers=(("ETag", '"2"'),)))
    assert client.json(GOVINFO + "/list") == {}
    assert client.json(GOVINFO + "/list") == {}


def test_a_cache_that_is_no_database_costs_nothing_but_the_cache(site, tmp_path, clock):
    (tmp_path / "feeds").mkdir()
    (tmp_path / "feeds" / "http_v2.db").write_bytes(b"no database" * 1000)
    site.at("/list", as_json({"files": [1]}))
    with Client(Endpoints({"govinfo": site.origin}), 1000.0, tmp_path, clock, print) as client:
        assert client.json(GOVINFO + "/list") == {"files": [1]}


def test_requests_to_one_host_keep_their_distance(site, tmp_path, clock):
    site.at("/a.xml", as_xml(XML))
    with Client(Endpoints({"govinfo": site.origin}), 2.0, tmp_path, clock, print) as client:
        for _ in range(4):
            get(client)
    assert clock.waits == [0.5, 0.5, 0.5]


def test_a_publisher_s_own_limit_is_not_exceeded_whatever_the_rate(site, tmp_path, clock):
    site.at("/a.xml", as_xml(XML))
    with Client(Endpoints({"federal-register": site.origin}), 40.0, tmp_path, clock, print) as client:
        for _ in range(3):
            client.file("https://www.federalregister.gov/a.xml", "xml", 1000)
    assert clock.waits == [1.0, 1.0]


def test_a_key_goes_to_its_service_as_a_header_and_nowhere_else(site, keyed):
    site.at("/published", as_json({}))
    keyed.json(API + "/published?pageSize=10")
    ((path, headers),) = site.log
    assert headers["x-api-key"] == KEY
    assert KEY not in path


def test_other_services_do_not_see_the_key(site, client, monkeypatch):
    monkeypatch.setenv("PER_SOURCE_EVAL_GOVINFO_KEY", KEY)
    site.at("/list", as_json({}))
    client.json(GOVINFO + "/list")
    assert KEY not in str(site.log)


def test_a_keyed_answer_is_not_kept_even_if_it_repeats_the_key(site, keyed, tmp_path):
    site.at("/published", as_json({"nextPage": f"{API}/published?api_key={KEY}"}, headers=(("ETag", '"1"'),)))
    keyed.json(API + "/published")
    keyed.json(API + "/published")
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert KEY.encode() not in b"".join(kept)
    assert "if-none-match" not in site.log[1][1]


def test_a_missing_key_is_named_with_the_way_to_get_one(site, tmp_path, clock, monkeypatch):
    monkeypatch.delenv("PER_SOURCE_EVAL_GOVINFO_KEY", raising=False)
    with (
        Client(Endpoints({"govinfo-api": site.origin}), 1.0, tmp_path, clock, print) as client,
        pytest.raises(InputError, match=r"environment as PER_SOURCE_EVAL_GOVINFO_KEY .*`fetch --demo-key`"),
    ):
        client.json(API + "/published")
    assert not site.log


def test_the_demo_key_is_used_only_where_it_was_asked_for(site, tmp_path, clock, monkeypatch):
    monkeypatch.delenv("PER_SOURCE_EVAL_GOVINFO_KEY", raising=False)
    site.at("/published", as_json({}))
    with Client(Endpoints({"govinfo-api": site.origin}, demo_key=True), 1.0, tmp_path, clock, print) as client:
        client.json(API + "/published")
    assert site.log[0][1]["x-api-key"] == "DEMO_KEY"


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_said_so_without_showing_it(site, keyed, status):
    site.at("/published", as_json({"error": {"code": "API_KEY_INVALID", "message": KEY}}, status=status))
    with pytest.raises(InputError, match="the key was refused") as caught:
        keyed.json(API + "/published")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("key", ["two words", "naïve", "x" * 5000, "line\nbreak"])
def test_what_cannot_be_a_key_is_refused_without_showing_it(site, tmp_path, clock, monkeypatch, key):
    monkeypatch.setenv("PER_SOURCE_EVAL_GOVINFO_KEY", key)
    with (
        Client(Endpoints({"govinfo-api": site.origin}), 1.0, tmp_path, clock, print) as client,
        pytest.raises(InputError, match="is no key") as caught,
    ):
        client.json(API + "/published")
    assert key not in str(caught.value)


def test_addresses_lose_a_key_and_a_fragment():
    endpoints = Endpoints({})
    assert endpoints.official(f"http://govinfo.gov/a?api_key={KEY}&n=1#x") == "https://www.govinfo.gov/a?n=1"


def test_messages_show_no_query(site, keyed):
    site.at("/published", Reply(status=404))
    with pytest.raises(Refused) as caught:
        keyed.json(f"{API}/published?secret=1")
    assert "secret" not in str(caught.value)


MIRRORS = ["gopher://x", "https://x/path", "https://u@x", "x:80", "http://", "https://x?q", "http://[x"]


@pytest.mark.parametrize("mirror", [*MIRRORS, "http://user:hunter2@x", "https://:hunter2@x", "https://@x"])
def test_a_mirror_is_an_origin_and_a_password_in_it_is_not_shown(mirror):
    with pytest.raises(InputError, match="is not of the form") as caught:
        Endpoints({"govinfo": mirror})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["gpo", "https://user:hunter2@x", ""])
def test_a_mirror_of_something_unknown_is_refused_with_the_names_there_are(name):
    with pytest.raises(InputError, match=r"no endpoint of this name\. Endpoints: govinfo,") as caught:
        Endpoints({name: "https://x"})
    assert "hunter2" not in str(caught.value)


def test_a_key_that_a_server_repeats_in_other_letters_is_not_shown(site, keyed):
    site.at("/type", Reply(b"x", type=f"application/{KEY.upper()}"))
    site.at("/host", Reply(status=302, headers=(("Location", f"https://{KEY.upper()}.example/"),)))
    site.at("/path", Reply(status=302, headers=(("Location", f"/{KEY.upper()}"),)))
    for path in ("/type", "/host", "/path"):
        with pytest.raises(Refused, match=r"\[key\]") as caught:
            keyed.json(API + path)
        assert KEY not in str(caught.value).lower()


def test_a_key_is_not_sent_in_the_clear():
    with pytest.raises(InputError, match="must be https"):
        Endpoints({"govinfo-api": "http://mirror.example"})


def test_every_official_address_is_https():
    assert all(row.origin.startswith("https://") for row in ENDPOINTS.values())
