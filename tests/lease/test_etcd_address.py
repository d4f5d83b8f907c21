"""Addresses of leases in etcd: what they mean, and how an address that means nothing is refused."""

from pathlib import Path

import pytest

from outlive._kernel.lease.etcd.address import parse_address
from outlive.errors.store import LeaseUrlError


@pytest.mark.parametrize(
    ("url", "endpoints", "prefix"),
    [
        ("etcd://a", [("a", 2379)], "outlive"),
        ("etcd://a,b,c", [("a", 2379), ("b", 2379), ("c", 2379)], "outlive"),
        ("etcd://a:1,b:65535/", [("a", 1), ("b", 65535)], "outlive"),
        ("etcd://a/team/orders/", [("a", 2379)], "team/orders"),
        ("etcd://a/caf%C3%A9", [("a", 2379)], "café"),
        ("etcd://[::1]:7,10.0.0.1,[fe80::2]", [("::1", 7), ("10.0.0.1", 2379), ("fe80::2", 2379)], "outlive"),
    ],
)
def test_address_names_endpoints_and_a_prefix(url: str, endpoints: list[tuple[str, int]], prefix: str) -> None:
    """The port is etcd's own and the prefix ours, unless they are given."""
    place = parse_address(url)

    assert (list(place.endpoints), place.prefix, place.tls) == (endpoints, prefix, None)


def test_user_and_password_may_be_percent_encoded() -> None:
    """User and password of an address may be percent-encoded, and the password is not shown."""
    place = parse_address("etcd://us%40er:p%2Fa%3Ass@a,[::1]:7/orders")

    assert (place.user, place.password) == ("us@er", "p/a:ss")
    assert str(place) == "etcd://a:2379,[::1]:7/orders"
    assert "p/a:ss" not in repr(place)


def test_tls_checks_the_server_by_default() -> None:
    """By the authorities that the system trusts."""
    place = parse_address("etcds://a")

    assert place.tls is not None
    assert place.tls.check_hostname
    assert str(place) == "etcds://a:2379/outlive"


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("zookeeper://a", "no leases have the scheme 'zookeeper'"),
        ("etcd:a", "no leases have the scheme 'etcd:a'"),
        ("etcd://", "'' is not an endpoint"),
        ("etcd://a,,b", "'' is not an endpoint"),
        ("etcd://a:0", "'a:0' is not an endpoint"),
        ("etcd://a:65536", "'a:65536' is not an endpoint"),
        ("etcd://a:http", "'a:http' is not an endpoint"),
        ("etcd://::1", "stands in brackets"),
        ("etcd://a b", "'a b' is not an endpoint"),
        ("etcd://a/x%0Ay", "is not a prefix"),
        ("etcd://a?ca=x", "write etcds://"),
        ("etcds://a?colour=x", "'colour' is not a parameter; there are ca, cert, key"),
        ("etcds://a?key=x", "add cert="),
        ("etcds://a?ca=/there/is/no/such.pem", "cannot be used"),
        ("etcds://a?cert=/there/is/no/such.pem", "cannot be used"),
    ],
)
def test_bad_address_is_refused_with_what_to_do(url: str, reason: str) -> None:
    """Before anything is opened."""
    with pytest.raises(LeaseUrlError) as refused:
        parse_address(url)

    assert reason in str(refused.value)
    assert 'use "store", "none" or "etcd://' in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "etcd://me:s3cret@a:0",
        "etcd://me:s3/cret@a",
        "etcd://me:s3?cret@a",
        "etcd://me:s3#cret@a",
        "etcd://me:s3@cret@a:0",
        "etcd://:s3cret@a",
        "etcds://me:s3cret@a?ca=/there/is/no/such.pem",
        "zookeeper://me:s3cret@a",
    ],
)
def test_password_is_in_no_error(url: str) -> None:
    """Nor a part of it, nor in what led to the error."""
    with pytest.raises(LeaseUrlError) as refused:
        parse_address(url)

    message = f"{refused.value!r} {vars(refused.value)} {refused.value.__cause__!r}"
    assert "s3" not in message
    assert "cret" not in message


@pytest.mark.parametrize("url", ["etcd://me@a", "etcd://me:@a"])
def test_user_needs_a_password(url: str) -> None:
    """The gateway of etcd does not know a user by a certificate."""
    with pytest.raises(LeaseUrlError, match="belong together"):
        parse_address(url)


def test_encrypted_key_does_not_ask_at_the_terminal(tmp_path: Path) -> None:
    """A worker has none."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    from tests.lease.certificates import Authority

    authority = Authority(tmp_path)
    cert, key = authority.issue("worker")
    secret = serialization.BestAvailableEncryption(b"locked")
    key.write_bytes(
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, secret
        )
    )

    with pytest.raises(LeaseUrlError, match="cannot be used"):
        parse_address(f"etcds://a?ca={authority.ca}&cert={cert}&key={key}")
