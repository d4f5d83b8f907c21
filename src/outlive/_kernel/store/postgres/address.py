"""Where a store lies: an address as PostgreSQL's own tools write it, and a few parameters of ours.

`postgresql://user@host:5432/database?schema=outlive&pgbouncer=true&allow_unsafe=true`: what is ours is taken out before
the driver sees the address; everything else (`sslmode`, `application_name`, ...) is the driver's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from outlive.errors.store import StoreUrlError

SCHEMA_BYTES_MAX = 63
"""PostgreSQL cuts off longer names, and two of them could become one."""
_FLAGS = {"true": True, "1": True, "on": True, "yes": True, "false": False, "0": False, "off": False, "no": False}
_SECRET = re.compile(r"((?:^|&)(?:ssl)?password=)[^&]*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """One schema in one database."""

    dsn: str
    """The connection string for the driver."""
    schema: str = "outlive"
    pgbouncer: bool = False
    """Whether a pooler stands between us and the server, so that no session is ours."""
    allow_unsafe: bool = False
    """Whether a server may be used that forgets what it has confirmed when the power fails."""

    def __str__(self) -> str:
        """For people: without a password."""
        parts = urlsplit(self.dsn)
        host = parts.netloc.rpartition("@")[2] or "localhost"
        return f"postgresql://{host}{parts.path} (schema {self.schema})"


def parse_address(url: str, *, schema: str | None = None) -> PostgresAddress:
    """Read an address.

    Raises:
        StoreUrlError: it is none, or has a parameter that makes no sense.
    """
    parts = _split(url)
    if parts.scheme not in ("postgresql", "postgres"):
        raise StoreUrlError(_hidden(url), f"no PostgreSQL store has the scheme {parts.scheme!r}")
    if parts.fragment or parts.netloc.count("@") > 1 or "@" in parts.path + parts.query.partition("=")[0]:
        # The rest would be taken for something else, and perhaps shown, or asked for as the name of a server.
        raise StoreUrlError(
            "postgresql://...", "a password with one of # / ? @ has to be percent-encoded (%23 %2F %3F %40)"
        )
    theirs, ours = [], {"schema": "outlive", "pgbouncer": "false", "allow_unsafe": "false"}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in ours:
            ours[name] = value
        else:
            theirs.append((name, value))
    if schema is not None:
        ours["schema"] = schema
    name = ours["schema"]
    # The last one ends the body of a function in migrations/.
    if not 0 < len(name.encode()) <= SCHEMA_BYTES_MAX or name.startswith("pg_") or "\0" in name or "$body$" in name:
        raise StoreUrlError(
            _hidden(url), f"schema={name!r} is not a name for a schema (1 to {SCHEMA_BYTES_MAX} bytes, not pg_...)"
        )
    if "," in parts.netloc + dict(theirs).get("host", "") and "target_session_attrs" not in dict(theirs):
        # The driver would be content with the first host that answers, also with a replica.
        theirs.append(("target_session_attrs", "read-write"))
    # Put together by hand: urlunsplit drops the slashes before an empty host.
    dsn = f"postgresql://{parts.netloc}{parts.path}{'?' if theirs else ''}{urlencode(theirs)}"
    return PostgresAddress(dsn, name, _flag(url, "pgbouncer", ours), _flag(url, "allow_unsafe", ours))


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise StoreUrlError("postgresql://...", f"{error}; an IPv6 address stands in brackets: [::1]") from None


def _flag(url: str, name: str, values: dict[str, str]) -> bool:
    try:
        return _FLAGS[values[name].lower()]
    except KeyError:
        raise StoreUrlError(_hidden(url), f"{name}={values[name]!r} is neither true nor false") from None


def _hidden(url: str) -> str:
    """The address without the password: it ends up in logs."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    query = _SECRET.sub(r"\1***", parts.query)
    return urlunsplit((parts.scheme, name + (":***" if colon else "") + at + host, parts.path, query, ""))
