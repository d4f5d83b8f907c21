"""The HTTP client of flows, against a real server."""

from __future__ import annotations

import asyncio
import datetime
import gzip
import random
import ssl
from ipaddress import ip_network
from pathlib import Path

import h11
import pytest

from outlive._features.flows.outside.allowed_hosts import parse_url
from outlive._features.flows.outside.http_answer import read_answer
from outlive._features.flows.outside.http_client import Fetcher, Reach, Request
from outlive.errors.outside import (
    AddressRefusedError,
    AnswerError,
    HostRefusedError,
    RedirectError,
    RequestError,
    UnreachableError,
)
from tests.flow.web import Asked, answer, serving

LOCAL = Reach(allow_networks=(ip_network("127.0.0.0/8"),))


class Names:
    """A DNS that gives the next of its answers every time it is asked."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        """The addresses of a host."""
        self.asked.append(host)
        return [self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]]


async def test_a_request_and_its_answer() -> None:
    """Method, path, headers and body arrive; status, headers and body come back."""
    async with serving(lambda _: answer(201, b"made", X_Kind="a")) as web:
        request = Request(url=web.url("/things?a=1"), method="POST", headers={"X-Own": "b "}, body=b"data")
        got = await Fetcher(LOCAL).fetch(request)

    (asked,) = web.asked
    assert (asked.method, asked.path, asked.body) == ("POST", "/things?a=1", b"data")
    assert (asked.headers["x-own"], asked.headers["host"]) == ("b", f"127.0.0.1:{web.port}")
    assert (asked.headers["user-agent"], asked.headers["connection"]) == ("outlive", "close")
    assert (got.status, got.body, got.headers["x-kind"], got.url) == (201, b"made", "a", web.url("/things?a=1"))


async def test_nothing_local_is_asked_unless_allowed() -> None:
    """By default no byte reaches this machine, whether it is named or numbered. [S25]"""
    async with serving(lambda _: answer(200, b"secret")) as web:
        for host in ("127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"):
            with pytest.raises(AddressRefusedError):
                await Fetcher().fetch(Request(url=web.url(host=host)))

    assert web.asked == []


async def test_a_dns_answer_that_changes_does_not_get_past_the_check() -> None:
    """S25, the rebinding of CVE-2026-7724: the name is resolved once, and that address is connected to. [S25]"""
    names = Names("127.0.0.1", "169.254.169.254")
    async with serving(lambda _: answer(200, b"ok")) as web:
        fetcher = Fetcher(LOCAL, resolve=names)
        got = await fetcher.fetch(Request(url=web.url(host="rebind.example")))
        assert got.body == b"ok"
        assert names.asked == ["rebind.example"]
        assert web.asked[0].headers["host"] == f"rebind.example:{web.port}"
        with pytest.raises(AddressRefusedError, match=r"169\.254\.169\.254.*link-local"):
            await fetcher.fetch(Request(url=web.url(host="rebind.example")))


async def test_every_hop_is_checked() -> None:
    """A redirect to a loopback, to a metadata address or to a name that has become one is refused. [S25]"""
    places = {
        "/loopback": "http://127.0.0.2:1/",
        "/metadata": "http://169.254.169.254/latest/",
        "/file": "file:///etc/passwd",
        "/odd": "http://0x7f.1/",
        "/flip": "http://flip.example/",
    }
    names = Names("127.0.0.1")
    async with serving(lambda asked: answer(302, Location=places[asked.path])) as web:
        reach = Reach(allow_hosts=(f"front.example:{web.port}",))
        for path in ("/loopback", "/metadata"):
            with pytest.raises(AddressRefusedError):
                await Fetcher(reach, resolve=names).fetch(Request(url=web.url(path, host="front.example")))
        with pytest.raises(ValueError, match="must begin with"):
            await Fetcher(reach, resolve=names).fetch(Request(url=web.url("/file", host="front.example")))
        names.answers = ["127.0.0.1", "10.0.0.1"]
        with pytest.raises(AddressRefusedError, match=r"flip.example resolves to 10\.0\.0\.1"):
            await Fetcher(reach, resolve=names).fetch(Request(url=web.url("/flip", host="front.example")))
        only = Reach(allow_networks=LOCAL.allow_networks, only_hosts=("127.0.0.1",))
        with pytest.raises(HostRefusedError):
            await Fetcher(only).fetch(Request(url=web.url("/flip")))

    assert [asked.path for asked in web.asked] == ["/loopback", "/metadata", "/file", "/flip", "/flip"]


async def test_credentials_do_not_go_to_another_origin() -> None:
    """No header of the request does but a few harmless ones, and no body; to the same origin all of them go. [S25]"""

    def handle(asked: Asked) -> bytes:
        return answer(307, Location=asked.path[1:]) if asked.path.startswith("/http") else answer(200, b"there")

    headers = {"Authorization": "Bearer t", "Cookie": "c", "X-Api-Key": "k", "Accept": "text/plain"}
    async with serving(handle) as web, serving(handle) as other:
        fetcher = Fetcher(LOCAL)
        same = await fetcher.fetch(Request(url=web.url(f"/{web.url('/same')}"), headers=headers))
        there = await fetcher.fetch(Request(url=web.url(f"/{other.url('/x')}"), headers=headers))
        with pytest.raises(RedirectError, match="would send the body to another origin"):
            await fetcher.fetch(Request(url=web.url(f"/{other.url('/x')}"), method="POST", body=b"k"))

    assert same.url == web.url("/same")
    assert {"authorization", "cookie", "x-api-key"} <= web.asked[1].headers.keys()
    assert there.url == other.url("/x")
    assert len(other.asked) == 1
    assert {"authorization", "cookie", "x-api-key"}.isdisjoint(other.asked[0].headers)
    assert other.asked[0].headers["accept"] == "text/plain"


def test_a_redirect_to_tls_of_the_same_host_may_have_the_credentials() -> None:
    """A redirect from http to https of the same host may have the credentials; any other change of scheme, port or host
    may not."""
    plain, safe = parse_url("http://a.example/"), parse_url("https://a.example/x")

    assert safe.is_trusted_like(plain)
    assert not plain.is_trusted_like(safe)
    assert not parse_url("https://a.example:444/").is_trusted_like(safe)
    assert not parse_url("https://b.example/").is_trusted_like(safe)


@pytest.mark.parametrize(
    ("status", "method", "then"),
    [(303, "POST", "GET"), (302, "POST", "GET"), (308, "PUT", "PUT"), (301, "HEAD", "HEAD")],
)
async def test_a_redirect_changes_the_method_as_browsers_do(status: int, method: str, then: str) -> None:
    """A redirect changes the method as browsers do, and sends the body again only if the method stays."""

    def handle(asked: Asked) -> bytes:
        return answer(status, Location="/there") if asked.path == "/" else answer(200)

    async with serving(handle) as web:
        await Fetcher(LOCAL).fetch(Request(url=web.url(), method=method, body=b"b", headers={"Content-Type": "a/b"}))

    assert web.asked[1].method == then
    assert (web.asked[1].body, "content-type" in web.asked[1].headers) == (
        (b"", False) if then == "GET" else (b"b", True)
    )


async def test_a_redirect_to_unquoted_characters_is_followed() -> None:
    """A redirect whose address has a space or a letter beyond ASCII is followed with these quoted."""

    def handle(asked: Asked) -> bytes:
        return answer(302, Location="/å b".encode().decode("latin-1")) if asked.path == "/" else answer(200)

    async with serving(lambda asked: handle(asked).decode("utf-8").encode("latin-1")) as web:
        assert (await Fetcher(LOCAL).fetch(Request(url=web.url()))).url == web.url("/%C3%A5%20b")


async def test_redirects_have_an_end() -> None:
    """At most five are followed; with 0 the answer that redirects is the answer. [S25]"""
    async with serving(lambda _: answer(302, Location="/again")) as web:
        with pytest.raises(RedirectError, match="at most 5 are followed"):
            await Fetcher(LOCAL).fetch(Request(url=web.url()))
        assert len(web.asked) == 6
        assert (await Fetcher(LOCAL).fetch(Request(url=web.url(), redirects_max=0))).status == 302


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "body"),
    [
        (CHUNKED + b"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: x\r\n\r\n", b"hello world"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokay", b"ok"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (answer(200, gzip.compress(b"packed", mtime=0), Content_Encoding="gzip"), b"packed"),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", b""),
    ],
)
async def test_bodies(raw: bytes, body: bytes) -> None:
    """By length, in chunks, until the connection ends, and packed although that was not asked for."""
    async with serving(lambda _: raw) as web:
        assert (await Fetcher(LOCAL).fetch(Request(url=web.url()))).body == body


@pytest.mark.parametrize(
    ("raw", "error", "complaint"),
    [
        (answer(200, b"x" * 2_000), AnswerError, "larger than 1000 bytes"),
        (CHUNKED + b"7d0\r\n" + b"x" * 2_000, AnswerError, "larger than 1000 bytes"),
        (CHUNKED + b"258\r\n" + b"x" * 600 + b"\r\n258\r\n" + b"x" * 600, AnswerError, "larger than 1000 bytes"),
        (b"HTTP/1.0 200 OK\r\n\r\n" + b"x" * 2_000, AnswerError, "larger than 1000 bytes"),
        (
            answer(200, gzip.compress(b"x" * 100_000, mtime=0), Content_Encoding="gzip"),
            AnswerError,
            "larger than 1000 bytes",
        ),
        (answer(200, b"x", Content_Encoding="gzip"), AnswerError, "is not valid gzip"),
        (answer(200, b"x", Content_Encoding="br"), AnswerError, "encoded as 'br'"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", AnswerError, "is not HTTP/1.1: illegal status line"),
        (b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n", AnswerError, "is not HTTP/1.1: continuation line"),
        (b"HTTP/1.1 200 OK\r\nno header\r\n\r\n", AnswerError, "is not HTTP/1.1: illegal header line"),
        (b"HTTP/2.0 200 OK\r\n\r\n", AnswerError, "is not HTTP/1.1"),
        (b"HTTP/1.1 099 OK\r\n\r\n", AnswerError, "is not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nokay", AnswerError, "conflicting"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", AnswerError, "bad Content-Length"),
        (CHUNKED + b"zz\r\n", AnswerError, "illegal chunk header"),
        (CHUNKED + b"2\r\nabcd\r\n", AnswerError, "malformed chunk footer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", AnswerError, "Only Transfer-Encoding"),
        (b"HTTP/1.1 101 Switch\r\n\r\n", AnswerError, "is not HTTP/1.1: .*SWITCH_UPGRADE"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 9, AnswerError, "not the last one"),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 300 + b"\r\n", AnswerError, "more than 200 headers"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n", AnswerError, "of more than 65536 bytes"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000, AnswerError, "a head or a line of more"),
        (CHUNKED + b"1;" + b"y" * 140_000, AnswerError, "a head or a line of more"),
        (CHUNKED + b"0\r\n" + b"X: y\r\n" * 30_000, AnswerError, "a head or a line of more"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", UnreachableError, "it ended before the answer"),
        (CHUNKED + b"5\r\nab", UnreachableError, "broke off"),
        (b"HTTP/1.1 200 OK\r\n", UnreachableError, "broke off"),
        (b"", UnreachableError, "broke off"),
    ],
)
async def test_an_answer_that_cannot_be_taken(raw: bytes, error: type[Exception], complaint: str) -> None:
    """Is an error that says why, and needs no more memory than the limit."""
    async with serving(lambda _: raw) as web:
        with pytest.raises(error, match=complaint):
            await Fetcher(LOCAL).fetch(Request(url=web.url(), bytes_max=1_000))


async def test_no_bytes_confuse_the_reader_of_answers() -> None:
    """They are an answer within its bounds, or an error of ours. [S25 S41]"""
    chance = random.Random(7)
    for _ in range(500):
        data = b"HTTP/1.1 200 OK\r\n" + b"".join(chance.choice(PARTS) for _ in range(chance.randint(0, 8)))
        reader = asyncio.StreamReader(limit=1_000)
        reader.feed_data(data)
        reader.feed_eof()
        try:
            found = await read_answer(reader, asked(), origin="it", bytes_max=10)
        except (AnswerError, EOFError):
            continue
        assert len(found.body) <= 10, data


def asked() -> h11.Connection:
    """A connection on which a request has been sent."""
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method="GET", target="/", headers=[("Host", "it")]))
    connection.send(h11.EndOfMessage())
    return connection


PARTS = [
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Encoding: gzip\r\n",
    b"\r\n",
    b"\n",
    b": x\r\n",
]
PARTS += [
    b"5\r\nhello\r\n",
    b"0\r\n\r\n",
    b"hello",
    b"\x00\xff",
    b"ffffffffffff\r\n",
    b"X: y\r\n",
    b"HTTP/1.1 100 Go\r\n",
]


async def test_a_request_without_an_answer_times_out() -> None:
    """A name, a connection and an answer that do not come in time are an error. [FB-C6 S25]"""

    async def never(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    async def unknown(host: str, port: int) -> list[str]:
        raise OSError("Name or service not known")

    async with serving(lambda _: answer(200)) as web:
        url = web.url(host="slow.example")
        with pytest.raises(UnreachableError, match=r"could not be connected to within 0\.01 s"):
            await Fetcher(resolve=never).fetch(Request(url=url, connect_seconds=0.01))
        with pytest.raises(UnreachableError, match="has no address: Name or service not known"):
            await Fetcher(resolve=unknown).fetch(Request(url=url))

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with server:
        with pytest.raises(UnreachableError, match=r"did not answer within 0\.02 s"):
            await Fetcher(LOCAL).fetch(Request(url=url, total_seconds=0.02))
    with pytest.raises(UnreachableError, match="could not be connected to"):
        await Fetcher(LOCAL).fetch(Request(url=url))


async def test_the_next_address_is_tried() -> None:
    """When one refuses, or leads nowhere; each gets its share of the time."""

    async def two(host: str, port: int) -> list[str]:
        return ["127.0.0.2", "127.0.0.1"]

    async with serving(lambda _: answer(200, b"second")) as web:
        got = await Fetcher(LOCAL, resolve=two).fetch(Request(url=web.url(host="two.example")))

    assert got.body == b"second"


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"method": "GET / HTTP/1.1\r\nX:"}, "not a method of HTTP"),
        ({"headers": {"X": "a\r\nY: b"}}, "has a line break"),
        ({"headers": {"X\r\nY": "a"}}, "a name that no header has"),
        ({"headers": {"X": "snow ☃"}}, "another character"),
        ({"headers": {"Host": "other"}}, "set by Outlive itself"),
        ({"headers": {"content-length": "3"}}, "set by Outlive itself"),
        ({"headers": {"Proxy-Authorization": "x"}}, "set by Outlive itself"),
    ],
)
async def test_a_request_cannot_hold_another_one(changed: dict[str, object], complaint: str) -> None:
    """Whatever an expression puts into a header. [S17 S25]"""
    with pytest.raises(RequestError, match=complaint):
        await Fetcher(LOCAL).fetch(Request(url="http://127.0.0.1:1/", **changed))  # type: ignore[arg-type]


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would resolve the name again, where no check sees it. [S25]"""
    async with serving(lambda _: answer(200, b"direct")) as web:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        assert (await Fetcher(LOCAL).fetch(Request(url=web.url()))).body == b"direct"


async def test_tls_asks_for_the_name_and_checks_it(tmp_path: Path) -> None:
    """Although it connects to the address: the certificate must be that of the name."""
    pem = certificate(tmp_path, "api.example")
    server_tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_tls.load_cert_chain(pem)
    async with serving(lambda _: answer(200, b"safe"), tls=server_tls) as web:
        trusting = Fetcher(LOCAL, resolve=Names("127.0.0.1"), ca_file=str(pem))
        got = await trusting.fetch(Request(url=web.url(host="api.example", scheme="https")))
        assert got.body == b"safe"
        assert web.server_names == ["api.example"]
        with pytest.raises(UnreachableError, match="certificate"):
            await trusting.fetch(Request(url=web.url(host="other.example", scheme="https")))
        with pytest.raises(UnreachableError, match="certificate"):
            await Fetcher(LOCAL).fetch(Request(url=web.url(scheme="https")))

    assert len(web.asked) == 1


def certificate(folder: Path, name: str) -> Path:
    """A certificate and its key in one file, signed by itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "certificate.pem"
    form = serialization.Encoding.PEM
    private = key.private_bytes(form, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pem.write_bytes(made.public_bytes(form) + private)
    return pem
