"""HTTP as feeds use it, against a loopback server."""

import pytest

from runner import __version__
from runner.base.errors import BackendError, InputError
from samplers.feeds.client import LONGEST_ANSWER, LONGEST_WAIT, MAX_REDIRECTS, Client
from samplers.feeds.endpoints import ENDPOINTS, Refused, followed
from tests.support.feed_server import FakeClock, Site, as_htm, as_xml, as_zip, lead
from tests.support.loopback import Wire, as_json, served

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


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr("samplers.feeds.client.RATE", 1000.0)


@pytest.fixture(name="client")
def _client(site, clock, monkeypatch):
    """A client whose official hosts all lead to the site."""
    lead(dict.fromkeys(ENDPOINTS, site.url), monkeypatch.setattr)
    monkeypatch.setenv("PER_SOURCE_EVAL_GOVINFO_KEY", KEY)
    with Client(clock, print) as client:
        yield client


def get(client, path="/a.xml", kind="xml", limit=10_000):
    return client.file(GOVINFO + path, kind, limit)


def test_a_file_comes_to_a_request_that_names_the_tool_and_what_it_accepts(site, client):
    site.at("/a.xml", as_xml(XML))
    site.at("/list", as_json({}))
    assert get(client) == XML
    client.json(GOVINFO + "/list")
    file_headers, list_headers = (request.headers for request in site.requests)
    assert file_headers["user-agent"].startswith(f"per-source-eval/{__version__}")
    assert "application/xml" in file_headers["accept"]
    assert list_headers["accept"] == "application/json"


def after(wait, status=503):
    """A busy server that asks to wait."""
    return Wire(status=status, headers=(("Retry-After", wait),))


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_server_is_asked_again_after_growing_waits(site, client, clock, status):
    site.at("/a.xml", Wire(status=status), Wire(status=status), as_xml(XML))
    assert get(client) == XML
    assert len(clock.waits) == 2
    assert 1 <= clock.waits[0] <= 2 <= clock.waits[1] <= 3


@pytest.mark.parametrize(
    ("reply", "message", "waits"),
    [
        (Wire(status=503), "HTTP 503, 6 times", 5),
        # All attempts at an answer share one deadline.
        (after("280"), "HTTP 503, 4 times", [280, 280, 280]),
        (after(str(int(LONGEST_WAIT) + 1), 429), "asks to wait 301 seconds", []),
    ],
)
def test_a_server_that_stays_busy_or_asks_for_too_much_ends_the_run(site, client, clock, reply, message, waits):
    site.at("/a.xml", reply)
    with pytest.raises(BackendError, match=message) as caught:
        get(client)
    assert not isinstance(caught.value, Refused)
    assert waits in (clock.waits, len(clock.waits))
    assert len(site.requests) == len(clock.waits) + 1
    assert sum(clock.waits) < LONGEST_ANSWER


@pytest.mark.parametrize("cut", [as_xml(XML, cut=20, resets=False), as_xml(XML[:-7], framed=False)])
def test_a_body_that_ends_early_is_asked_for_again(site, client, cut):
    site.at("/a.xml", cut, as_xml(XML))
    assert get(client) == XML
    assert len(site.requests) == 2


def led_to(location):
    return Wire(status=302, headers=(("Location", location),))


ELSEWHERE = (
    *("https://www.ecfr.gov/b.xml", "http://127.0.0.1:9/b.xml", "ftp://www.govinfo.gov/b.xml", "//evil.example/b.xml"),
    *("https://www.govinfo.gov@evil.example/", "file:///etc/passwd"),
)


@pytest.mark.parametrize(
    ("kind", "reply", "message", "n_asked"),
    [
        ("xml", as_xml(XML[:-7], framed=False), "ends without </bill>, 6 times", 6),
        ("htm", Wire(b"<html><body><pre>\nMINU", type="text/html", framed=False), "ends without </html>", 6),
        ("htm", Wire(b"<html><body><h1>Sorry</h1></body></html>", type="text/html"), "an HTML page, no htm file", 1),
        ("xml", Wire(b"<!DOCTYPE html><html></html>", type="text/html; charset=utf-8"), "an HTML page, no xml", 1),
        ("xml", as_xml(b"<html><body>Service Error</body></html>"), "an HTML page, no xml", 1),
        ("zip", Wire(b"not one", type="application/zip"), "something else, no zip", 1),
        ("xml", as_xml(b"<a>" + b" " * 20_000 + b"</a>"), "more than 10,000 bytes", 1),
        ("xml", as_xml(b"<a>" + b" " * 200_000 + b"</a>", framed=False), "more than 10,000 bytes", 1),
        ("xml", as_xml(XML, headers=(("Content-Encoding", "zstd"),)), "compressed", 1),
        ("xml", Wire(status=404), r"https://www.govinfo.gov/a: HTTP 404", 1),
        ("xml", led_to("/a"), "redirected more than", MAX_REDIRECTS + 1),
        *(("xml", led_to(place), "leads to another host", 1) for place in ELSEWHERE),
    ],
)
def test_an_answer_that_is_not_the_file_is_refused(site, client, kind, reply, message, n_asked):
    site.at("/a", reply)
    with pytest.raises(Refused, match=message):
        get(client, "/a", kind)
    assert len(site.requests) == n_asked


@pytest.mark.parametrize("location", ["/b.xml", "http://www.govinfo.gov/b.xml", "https://govinfo.gov/b.xml"])
def test_a_redirect_on_the_same_host_is_followed(site, client, location):
    site.at("/a.xml", led_to(location))
    site.at("/b.xml", as_xml(XML))
    assert get(client) == XML


DECLARED = ("", "application/octet-stream", "text/plain")


@pytest.mark.parametrize(
    ("kind", "reply"),
    [
        ("xml", as_xml(b'<?xml version="1.0"?><bill xmlns:html="h"><html:table/></bill>')),
        ("xml", as_xml(b"<!--<?xml version='1.0'?><html>--><bill>1</bill><!-- end -->")),
        ("xml", as_xml(b'<?xml version="1.0"?>\n<!DOCTYPE bill PUBLIC "-//X//b//EN" "b.dtd">\n<bill>1</bill>\n')),
        ("xml", as_xml(b'\xef\xbb\xbf<ns3:uscDoc xmlns:ns3="u">1</ns3:uscDoc>')),
        ("xml", as_xml(b"<RULE/>")),
        ("xml", as_xml(XML.decode().encode("utf-16"))),
        ("zip", as_zip({"a.xml": XML})),
        ("htm", as_htm("MINUTES")),
        *(("xml", Wire(XML, type=declared)) for declared in DECLARED),
    ],
)
def test_a_file_is_known_by_its_content_with_prologs_of_every_kind_and_types_that_say_nothing(
    site, client, kind, reply
):
    site.at("/a", reply)
    assert get(client, "/a", kind) == reply.body


def test_an_answer_that_drips_for_ever_is_given_up_and_the_next_one_comes(site, client, clock, monkeypatch):
    site.at("/a.xml", as_xml(XML, slow="body"))
    site.at("/b.xml", as_xml(XML))
    with monkeypatch.context() as patch:
        patch.setattr("samplers.feeds.client.LONGEST_ANSWER", 0.3)
        patch.setattr("samplers.feeds.client.TRIES", 1)
        with Client(clock, print) as hurried, pytest.raises(BackendError, match="no whole answer within"):
            get(hurried)
    assert get(client, "/b.xml") == XML


@pytest.mark.parametrize(
    ("replies", "message"),
    [
        ([Wire(b'{"files": ['), as_json({"files": []})], ""),
        ([Wire(b"[" * 100_000)], "not JSON, 6 times"),
        ([Wire(status=406)], "HTTP 406"),
    ],
)
def test_a_listing_that_is_not_json_is_asked_for_again_and_refused_in_the_end(site, client, replies, message):
    site.at("/list", *replies)
    if not message:
        assert client.json(GOVINFO + "/list") == {"files": []}
        return
    with pytest.raises(Refused, match=message):
        client.json(GOVINFO + "/list")


@pytest.mark.parametrize(
    ("host", "rate", "waits"),
    [("www.govinfo.gov", 2.0, [0.5, 0.5, 0.5]), ("www.federalregister.gov", 40.0, [1.0, 1.0, 1.0])],
)
def test_requests_keep_their_distance_and_a_publisher_s_own_limit(site, client, clock, monkeypatch, host, rate, waits):
    monkeypatch.setattr("samplers.feeds.client.RATE", rate)
    site.at("/a.xml", as_xml(XML))
    for _ in range(4):
        client.file(f"https://{host}/a.xml", "xml", 1000)
    assert clock.waits == waits


def test_a_key_goes_to_its_service_as_a_header_and_nowhere_else(site, client):
    site.at("/published", as_json({}))
    client.json(API + "/published?pageSize=10")
    client.json(GOVINFO + "/published")
    first, elsewhere = site.requests
    assert first.headers["x-api-key"] == KEY
    assert KEY not in first.path + str(elsewhere.headers)


@pytest.mark.parametrize("key", ["", "two words", "naïve", "x" * 5000, "line\nbreak"])
def test_a_missing_key_is_named_and_what_cannot_be_one_is_not_shown(site, client, monkeypatch, key):
    monkeypatch.setenv("PER_SOURCE_EVAL_GOVINFO_KEY", key)
    with pytest.raises(InputError, match="PER_SOURCE_EVAL_GOVINFO_KEY") as caught:
        client.json(API + "/published")
    assert not key or key not in str(caught.value)
    assert not site.requests


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_said_so_without_showing_it(site, client, status):
    site.at("/published", as_json({"error": {"code": "API_KEY_INVALID", "message": KEY}}, status=status))
    with pytest.raises(InputError, match="the key was refused") as caught:
        client.json(API + "/published")
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("location", ["http://[::1", "https://www.govinfo.gov:x/", *ELSEWHERE])
def test_a_following_page_elsewhere_is_refused(location):
    with pytest.raises(Refused):
        followed(GOVINFO + "/a", location)


def test_addresses_lose_a_key_and_a_fragment():
    assert followed(f"{GOVINFO}/b", f"http://govinfo.gov/a?api_key={KEY}&n=1#x") == "https://www.govinfo.gov/a?n=1"


def test_a_key_that_a_server_repeats_in_other_letters_is_not_shown(site, client):
    site.at("/host", Wire(status=302, headers=(("Location", f"https://{KEY.upper()}.example/"),)))
    site.at("/path", Wire(status=302, headers=(("Location", f"/{KEY.upper()}"),)))
    site.at("/user", Wire(status=302, headers=(("Location", f"https://{KEY}@evil-{KEY}.example/{KEY}?{KEY}"),)))
    for path in ("/host", "/path", "/user"):
        with pytest.raises(Refused, match=r"\[key\]") as caught:
            client.json(API + path)
        assert KEY not in str(caught.value).lower()
