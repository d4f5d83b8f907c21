"""Reverse proxies in front of a server: which addresses are theirs, and whose requests they send on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

from outlive.errors import ConfigurationError

FORWARDED_FOR = "x-forwarded-for"
_WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d+)?|([0-9.]+):\d+")


class Proxies:
    """Says whether an address is one of the proxies that are listed by their addresses or networks.

    Raises:
        ConfigurationError: one of them is not an address.
    """

    def __init__(self, proxies: Iterable[str]) -> None:
        self.networks = [_network(proxy) for proxy in proxies]

    def __call__(self, address: str) -> bool:
        """Whether it is."""
        try:
            found = ip_address(address.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(found, "ipv4_mapped", None)
        return any(each in network for network in self.networks for each in (found, mapped) if each is not None)

    def sender(self, peer: str, forwarded: str) -> str:
        """The address that a request comes from.

        Args:
            peer: the address of the connection.
            forwarded: `X-Forwarded-For`, in which each proxy adds at the end from where it was asked. What a listed
                proxy says is believed, so it is the last address that is not one of them.
        """
        address, hops = peer, forwarded.split(",")
        while hops and self.networks and self(address):
            hop = _address(hops.pop())
            if not hop:
                break
            address = hop
        return address


def _address(hop: str) -> str:
    """An address that a proxy has written, which may have a port, in one spelling; empty if it is something else."""
    text = hop.strip()
    if (found := _WITH_PORT.fullmatch(text)) is not None:
        text = found[1] or found[2] or ""
    try:
        return str(ip_address(text))
    except ValueError:
        return ""


def _network(proxy: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(proxy)
    except ValueError as error:
        raise ConfigurationError(f"{proxy!r} is not an address of a proxy: {error}") from None


NO_PROXIES = Proxies(())
