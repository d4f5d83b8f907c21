"""Which hosts and addresses a flow may reach. No I/O: what resolves names and connects is `http_client`.

A flow is data, and so is the URL in its input. Without a guard a person who may only start it could let the worker ask
the metadata service of its cloud, or an admin page that trusts its network. So an address is reached only if it is a
public one, or if the operator has allowed it. What is checked is the address that is connected to: a name is resolved
once, and never again between the check and the connection.

Names are taken as they are and addresses in their one usual spelling. Other spellings (`0x7f.1`, `2130706433`, an IPv4
address in an IPv6 one, a zone) mean different things to different libraries, which is how guards like this one are
passed, so they are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias
from urllib.parse import urlsplit, urlunsplit

from outlive.errors.outside import AddressRefusedError, HostRefusedError, UrlError

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

URL_CHARACTERS_MAX = 8_192
PORTS = {"http": 80, "https": 443}

_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_BRACKETED = re.compile(r"\[[^\[\]]*\](:[0-9]*)?")
_VISIBLE = re.compile(r"[!-~]+")

# Written out, and not asked of `ipaddress`: what its `is_global` means has changed between releases of Python.
_REFUSED: dict[str, tuple[str, ...]] = {
    "this network": ("0.0.0.0/8",),
    "a private address": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
    "a private address of a carrier": ("100.64.0.0/10",),
    "a loopback address": ("127.0.0.0/8", "::1/128"),
    "a link-local address, where clouds have their metadata": ("169.254.0.0/16", "fe80::/10"),
    "a metadata address of a cloud": ("168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32"),
    "a multicast address": ("224.0.0.0/4", "ff00::/8"),
    "an IPv4 address in an IPv6 one": ("::ffff:0:0/96", "::/96", "2002::/16", "2001::/32"),
    "a reserved address": (
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "240.0.0.0/4",
        "2001::/23",
        "2001:db8::/32",
        "3fff::/20",
    ),
}
_BY_NETWORK: list[tuple[Network, str]] = sorted(
    ((ip_network(text), kind) for kind, texts in _REFUSED.items() for text in texts), key=lambda it: -it[0].prefixlen
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
"""How an IPv6-only network reaches an IPv4 address, which is the last 32 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The target of a URL, in parts that were checked."""

    scheme: str
    host: str
    """In lower case, without the dot at its end."""
    port: int
    path: str
    """With its query, as the request line has it."""
    address: Address | None
    """If the host is an address and no name."""

    @property
    def authority(self) -> str:
        """The value of the header Host."""
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """For people: without the path, which may hold a secret."""
        return f"{self.scheme}://{self.authority}"

    @property
    def url(self) -> str:
        """The whole of it."""
        return f"{self.origin}{self.path}"

    def is_trusted_like(self, other: Target) -> bool:
        """Whether what was meant for `other` may be sent here: the same origin, or the same host by TLS instead of
        without."""
        if self.host != other.host:
            return False
        is_upgrade = (other.scheme, other.port, self.scheme, self.port) == ("http", 80, "https", 443)
        return is_upgrade or (self.scheme, self.port) == (other.scheme, other.port)


def parse_url(url: str) -> Target:
    """The parts of a URL.

    Raises:
        UrlError: it is none that a flow may ask for.
    """
    if len(url) > URL_CHARACTERS_MAX:
        raise UrlError(f"{url[:100]}...", f"is longer than {URL_CHARACTERS_MAX} characters")
    if not _VISIBLE.fullmatch(url) or "\\" in url:
        raise UrlError(url, "has a character that no URL has; write spaces and others as %20, a host as xn--...")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UrlError(url, f"cannot be read: {error}") from None
    if parts.scheme not in PORTS:
        raise UrlError(url, "must begin with https:// or http://")
    if "@" in parts.netloc:
        raise UrlError(urlunsplit(parts._replace(netloc="...")), "has a user or password; give them as a header")
    is_bracketed = parts.netloc.startswith("[")
    if is_bracketed and not _BRACKETED.fullmatch(parts.netloc):
        raise UrlError(url, "has no host that could be one")
    if port == 0:
        raise UrlError(url, "has the port 0")
    host = (parts.hostname or "").lower()
    address = _address_of(url, host, is_bracketed=is_bracketed)
    path = urlunsplit(("", "", parts.path or "/", parts.query, ""))
    return Target(
        scheme=parts.scheme,
        host=host.removesuffix(".") if address is None else str(address),
        port=port or PORTS[parts.scheme],
        path=path,
        address=address,
    )


def _address_of(url: str, host: str, *, is_bracketed: bool) -> Address | None:
    """The address that the host is, or None if it is a name."""
    if is_bracketed:
        if "%" in host:
            raise UrlError(url, "has an IPv6 zone, which only means something on one machine")
        try:
            return IPv6Address(host)
        except ValueError as error:
            raise UrlError(url, f"has no IPv6 address in its brackets: {error}") from None
    if not _NAME.fullmatch(host) or len(host) > 254:
        raise UrlError(url, "has no host that could be one")
    if not _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]):
        return None
    try:
        return IPv4Address(host)
    except ValueError:
        raise UrlError(url, "has an IPv4 address that is not written as four decimal numbers") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The servers that flows of this process may reach. By default: every public address."""

    allow_hosts: tuple[str, ...] = ()
    """Hosts that may have any address: `api.internal`, `*.corp.example`, with a port or without."""
    allow_networks: tuple[Network, ...] = ()
    """Networks whose addresses may be reached."""
    only_hosts: tuple[str, ...] | None = None
    """If given, no other host may be reached."""

    def check(self, target: Target, addresses: Iterable[str]) -> None:
        """Return if all these addresses of the target may be reached. A name with addresses of both kinds is refused:
        no server needs that, and who wants to mislead a guard does.

        Raises:
            HostRefusedError: only other hosts may be.
            AddressRefusedError: one of the addresses may not be.
            UrlError: it is not an address.
        """
        if self.only_hosts is not None and not _matches(target, self.only_hosts):
            raise HostRefusedError(target.authority)
        if _matches(target, self.allow_hosts):
            return
        for text in addresses:
            if "%" in text:
                raise AddressRefusedError(target.host, text, "an address with an IPv6 zone")
            address = ip_address(text)
            if any(address in network for network in self.allow_networks):
                continue
            if kind := refused_kind(address):
                raise AddressRefusedError(target.host, text, kind)


def refused_kind(address: Address) -> str:
    """The kind of this address, if it is not public; else nothing."""
    if isinstance(address, IPv6Address) and address in _NAT64:
        return refused_kind(IPv4Address(int(address) & 0xFFFF_FFFF))
    for network, kind in _BY_NETWORK:
        if address in network:
            return kind
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        return "a reserved address"
    return ""


def _matches(target: Target, patterns: tuple[str, ...]) -> bool:
    for pattern in patterns:
        host, _, port = pattern.lower().partition(":") if pattern.count(":") == 1 else (pattern.lower(), "", "")
        if port and port != str(target.port):
            continue
        if target.host == host or (host.startswith("*.") and target.host.endswith(host[1:])):
            return True
    return False
