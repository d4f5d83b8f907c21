"""Namespaces: several tenants on one server or in one folder, each with a store of its own in it.

A namespace is a schema of its own in the database, or a file of its own beside the file. What one tenant's engine asks
cannot touch the tables of another: there is no condition in a statement that could be forgotten. And what is true of a
store is true of a namespace: `fsck`, `backup`, `move`, retention and migrations work on one of them.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from outlive.engine.url import SERVERS, path_in
from outlive.errors import InvalidArgumentError

NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
NAME_CHARACTERS_MAX = 30
BETWEEN = "__"
"""Between the schema of the address and the name."""


def check_namespace(namespace: object) -> str:
    """The name of a namespace.

    Raises:
        InvalidArgumentError: it is none.
    """
    if not isinstance(namespace, str) or not NAME.fullmatch(namespace) or len(namespace) > NAME_CHARACTERS_MAX:
        wanted = f"give up to {NAME_CHARACTERS_MAX} small letters, digits and single hyphens, for example 'acme'"
        raise InvalidArgumentError("Engine", "namespace", namespace, wanted)
    return namespace


def in_namespace(url: str, namespace: str | None) -> str:
    """The address of a namespace in the store that a URL names; the store itself if there is no namespace.

    Raises:
        InvalidArgumentError: that is not a name of a namespace. StoreUrlError: the URL names no store.
    """
    if namespace is None:
        return url
    name = check_namespace(namespace)
    scheme = _scheme_of(url)
    if scheme == "sqlite":
        path = Path(path_in(url))
        return f"sqlite:{path.with_name(f'{path.stem}.{name}{path.suffix}')}"
    if scheme in SERVERS:
        from outlive._kernel.store.postgres.address import parse_address

        parse_address(url)  # A mistake in it is reported of the URL as it was given.
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
        own = dict(query).get("schema", "outlive")
        query = [(key, value) for key, value in query if key != "schema"]
        query.append(("schema", f"{own}{BETWEEN}{name}"))
        # Put together by hand: urlunsplit drops the slashes before an empty host.
        return f"{scheme}://{parts.netloc}{parts.path}?{urlencode(query)}"
    return url  # A store in memory belongs to its engine already; what is not a URL is refused where it is opened.


async def list_namespaces(url: str) -> list[str]:
    """The namespaces that have a store where a URL names one, by name."""
    scheme = _scheme_of(url)
    if scheme == "sqlite":
        names = _in_files(Path(path_in(url)))
    elif scheme in SERVERS:
        from outlive._kernel.store.postgres.address import parse_address
        from outlive._kernel.store.postgres.schemas import list_schemas

        address = parse_address(url)
        begin = f"{address.schema}{BETWEEN}"
        names = [name.removeprefix(begin) for name in await list_schemas(address) if name.startswith(begin)]
    else:
        names = []
    return sorted(name for name in names if NAME.fullmatch(name))


def _scheme_of(url: object) -> str:
    """How a URL begins; empty if it is not text."""
    return url.partition(":")[0] if isinstance(url, str) else ""


def _in_files(path: Path) -> list[str]:
    files = path.expanduser().parent.glob(f"{path.stem}.*{path.suffix}")
    return [file.name.removeprefix(f"{path.stem}.").removesuffix(path.suffix) for file in files]
