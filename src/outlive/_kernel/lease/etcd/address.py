"""Where leases lie in etcd: `etcd://user:password@a:2379,b:2379/prefix`, or `etcds://...?ca=...&cert=...&key=...`."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from outlive.errors.store import LeaseUrlError

SCHEMES = ("etcd", "etcds")
PORT = 2379
PREFIX = "outlive"
_FILES = ("ca", "cert", "key")
_ENDPOINT = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s\[\]:@/?#,]+)(:(?P<port>[0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class EtcdAddress:
    """One prefix in one cluster."""

    endpoints: tuple[tuple[str, int], ...]
    prefix: str
    user: str = ""
    password: str = field(default="", repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def __str__(self) -> str:
        """For people: without user and password."""
        hosts = ",".join(name_of(endpoint) for endpoint in self.endpoints)
        return f"etcd{'' if self.tls is None else 's'}://{hosts}/{self.prefix}"


def name_of(endpoint: tuple[str, int]) -> str:
    """An endpoint for people."""
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(url: str) -> EtcdAddress:
    """Read an address, and the files that it names.

    Raises:
        LeaseUrlError: it is none, or names files that cannot be used.
    """
    scheme, _, rest = url.partition("://")
    if scheme not in SCHEMES:
        raise LeaseUrlError(_hidden(url), f"no leases have the scheme {scheme!r}")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    if "#" in url or "@" in path + query:
        # The rest would be taken for something else, and perhaps shown.
        raise LeaseUrlError(f"{scheme}://...", "a password with one of # / ? @ has to be percent-encoded")
    credentials, _, hosts = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    if bool(user) != bool(password):
        raise LeaseUrlError(_hidden(url), "a user and a password belong together, as in etcd://user:password@host")
    prefix = unquote(path).strip("/") or PREFIX
    if not prefix.isprintable():
        raise LeaseUrlError(_hidden(url), f"{prefix!r} is not a prefix for keys")
    return EtcdAddress(
        endpoints=tuple(_endpoint(url, text) for text in hosts.split(",")),
        prefix=prefix,
        user=unquote(user),
        password=unquote(password),
        tls=_tls(url, scheme, query),
    )


def _endpoint(url: str, text: str) -> tuple[str, int]:
    found = _ENDPOINT.fullmatch(text)
    port = PORT if found is None else int(found["port"] or PORT)
    if found is None or not 0 < port < 65_536:
        raise LeaseUrlError(
            _hidden(url), f"{text!r} is not an endpoint; an IPv6 address stands in brackets: [::1]:2379"
        )
    return found["host"].strip("[]"), port


def _tls(url: str, scheme: str, query: str) -> ssl.SSLContext | None:
    files = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(set(files) - set(_FILES)):
        raise LeaseUrlError(_hidden(url), f"{unknown[0]!r} is not a parameter; there are {', '.join(_FILES)}")
    if scheme == "etcd":
        if files:
            raise LeaseUrlError(_hidden(url), f"{', '.join(files)} only makes sense with TLS: write etcds://")
        return None
    if "key" in files and "cert" not in files:
        raise LeaseUrlError(_hidden(url), "a key without its certificate; add cert=")
    try:
        context = ssl.create_default_context(cafile=files.get("ca"))
        if "cert" in files:
            # The empty password keeps OpenSSL from asking for one at the terminal.
            context.load_cert_chain(files["cert"], files.get("key"), password="")
    except (OSError, ValueError) as error:
        raise LeaseUrlError(_hidden(url), f"its files cannot be used ({error})") from None
    return context


def _hidden(url: str) -> str:
    """The address without the password: it ends up in logs."""
    credentials, at, rest = url.rpartition("@")
    scheme, _, user = credentials.partition("://")
    return f"{scheme}://{user.partition(':')[0]}:***@{rest}" if at else url
