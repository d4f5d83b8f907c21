"""Which URLs and addresses a flow may ask for."""

from __future__ import annotations

import random
from ipaddress import ip_address, ip_network

import pytest

from outlive._features.flows.outside.allowed_hosts import Reach, parse_url, refused_kind
from outlive.errors.outside import AddressRefusedError, HostRefusedError, UrlError


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("ftp://example.com/", "must begin with https:// or http://"),
        ("file:///etc/passwd", "must begin with https:// or http://"),
        ("gopher://127.0.0.1:70/", "must begin with https:// or http://"),
        ("//example.com/", "must begin with https:// or http://"),
        ("http://user:geheim@example.com/", "has a user or password"),
        ("http://example.com@127.0.0.1/", "has a user or password"),
        ("http://0x7f.1/", "not written as four decimal numbers"),
        ("http://0x7f000001/", "not written as four decimal numbers"),
        ("http://2130706433/", "not written as four decimal numbers"),
        ("http://127.1/", "not written as four decimal numbers"),
        ("http://0177.0.0.1/", "not written as four decimal numbers"),
        ("http://127.0.0.1./", "not written as four decimal numbers"),
        ("http://127.0.0.0x1/", "not written as four decimal numbers"),
        ("http://[fe80::1%25eth0]/", "IPv6 zone"),
        ("http://[fe80::1%eth0]/", "IPv6 zone"),
        ("http://[::1]x/", "cannot be read|has no host|no IPv6"),
        ("http://[v1.x]/", "cannot be read|no IPv6"),
        ("http:///path", "has no host"),
        ("http://exa mple.com/", "a character that no URL has"),
        ("http://example.com/a\r\nX-Injected: 1", "a character that no URL has"),
        ("http://example.com\\@127.0.0.1/", "a character that no URL has"),
        ("http://127。0。0。1/", "a character that no URL has"),
        ("http://ⓛocalhost/", "a character that no URL has"),
        ("http://example.com:0/", "has the port 0"),
        ("http://example.com:99999/", "cannot be read"),
        ("http://-x.example/", "has no host that could be one"),
        ("http://" + "a" * 64 + ".example/", "has no host that could be one"),
        ("http://example.com/" + "a" * 9_000, "is longer than 8192 characters"),
    ],
)
def test_a_url_that_could_mean_two_things_is_refused(url: str, complaint: str) -> None:
    """Before any name is resolved; S25. [FB-C8 S25]"""
    with pytest.raises(UrlError, match=complaint) as caught:
        parse_url(url)

    assert "geheim" not in str(caught.value)


def test_the_parts_of_a_url() -> None:
    """A URL is split into the scheme, host, port and path that its request has."""
    target = parse_url("https://Example.COM.:8443/a/b?c=%20d#part")

    assert (target.scheme, target.host, target.port, target.path) == ("https", "example.com", 8443, "/a/b?c=%20d")
    assert target.authority == "example.com:8443"
    assert parse_url("http://[0:0:0:0:0:0:0:1]").authority == "[::1]"
    assert parse_url("https://example.com?x=1").url == "https://example.com/?x=1"


REFUSED = """
0.0.0.0 10.1.2.3 100.64.0.1 100.100.100.200 127.0.0.1 127.255.255.254 169.254.169.254 172.16.0.1
172.31.255.255 192.0.0.192 192.0.2.1 192.168.1.1 198.18.0.1 198.51.100.1 203.0.113.9 224.0.0.1 239.255.255.255
240.0.0.1 255.255.255.255 168.63.129.16 :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:8.8.8.8 fe80::1 fec0::1
fc00::1 fd00:ec2::254 ff02::1 2001:db8::1 2002:7f00:1:: 2001:0:4136:e378:8000:63bf:3fff:fdd2 64:ff9b::7f00:1
64:ff9b::10.0.0.1 100::1 3fff::1 4000::1 5f00::1
"""


@pytest.mark.parametrize("address", REFUSED.split())
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    """A private, loopback, link-local, metadata, multicast or reserved address is refused, also as IPv4 in IPv6.
    [S25]"""
    assert refused_kind(ip_address(address))


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "172.32.0.1", "2606:4700::1111", "64:ff9b::8.8.8.8"])
def test_public_addresses_are_allowed(address: str) -> None:
    """A public address is allowed, even behind the NAT64 of an IPv6-only network."""
    assert not refused_kind(ip_address(address))


def test_an_operator_allows_hosts_and_networks() -> None:
    """By name, by pattern, with a port, or by network."""
    reach = Reach(
        allow_hosts=("api.internal", "*.corp.example", "box:8080"), allow_networks=(ip_network("10.0.0.0/24"),)
    )

    for url in ("http://api.internal/", "https://API.internal.:444/", "http://a.b.corp.example/", "http://box:8080/"):
        reach.check(parse_url(url), ["127.0.0.1"])
    reach.check(parse_url("http://other.example/"), ["10.0.0.7", "8.8.8.8"])
    for url in ("http://corp.example/", "http://evilcorp.example/", "http://box/", "http://api.internal.evil.example/"):
        with pytest.raises(AddressRefusedError, match="is a loopback address") as caught:
            reach.check(parse_url(url), ["127.0.0.1"])
        assert "allow_networks" in str(caught.value)
    with pytest.raises(AddressRefusedError, match=r"10\.0\.1\.1, which is a private address"):
        reach.check(parse_url("http://other.example/"), ["8.8.8.8", "10.0.1.1"])
    with pytest.raises(AddressRefusedError, match="IPv6 zone"):
        reach.check(parse_url("http://other.example/"), ["fe80::1%2"])


def test_an_operator_may_name_the_only_hosts() -> None:
    """Then no other one is reached, public or not; those still need a public address."""
    reach = Reach(only_hosts=("api.example",))

    reach.check(parse_url("https://api.example/"), ["8.8.8.8"])
    with pytest.raises(HostRefusedError, match="only_hosts"):
        reach.check(parse_url("https://other.example/"), ["8.8.8.8"])
    with pytest.raises(AddressRefusedError):
        reach.check(parse_url("https://api.example/"), ["127.0.0.1"])


def test_no_text_gets_past_the_reader_of_urls() -> None:
    """It is refused, or it has one meaning: what is read is read the same way again."""
    chance = random.Random(7)
    for _ in range(2_000):
        url = "http://" + "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 7)))
        try:
            target = parse_url(url)
        except UrlError:
            continue
        assert parse_url(target.url) == target, url
        assert "@" not in target.authority, url
        assert not set(target.url) & set("\\\r\n \0"), url


PIECES = [
    *"@:/?#\\.[]%-1e",
    "127.0.0.1",
    "localhost",
    "[::1]",
    "%25eth0",
    "80",
    "0x7f",
    "0177",
    "a.example",
    "\0",
    "\r\n",
]
PIECES += ["::ffff:1.2.3.4", "65536", "xn--p1ai", "\u0663", "\u3002", " "]
