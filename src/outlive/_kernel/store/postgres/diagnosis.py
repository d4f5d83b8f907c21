"""The findings of a doctor about a server: whether it can be reached, keeps its commits, and has our schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncpg

from outlive._kernel.model.instant import MICROSECONDS
from outlive._kernel.store.diagnosis import Finding, problem, size, warning, well
from outlive._kernel.store.postgres.address import parse_address
from outlive._kernel.store.postgres.connection import Session, connect
from outlive._kernel.store.postgres.examine import ONE_MOMENT
from outlive._kernel.store.postgres.fault import ERRORS
from outlive._kernel.store.postgres.migrate import VERSION_MIN, has_functions, lack_of_rights
from outlive._kernel.store.postgres.query import migrations
from outlive.errors import StoreUnavailableError

CLOCK_SECONDS_MAX = 1.0
"""The clock of the server counts; a difference shows in logs, and in what steps stamp themselves."""
CONNECTIONS_SHARE_MAX = 0.8
TRANSACTION_SECONDS_MAX = 3_600
FROZEN_AGE_MAX = 1_000_000_000
"""PostgreSQL stops at two billions."""


def diagnose_driver() -> Finding:
    """Which driver there is."""
    return well("asyncpg", asyncpg.__version__)


async def diagnose_server(url: str, *, now: Callable[[], int]) -> list[Finding]:
    """The findings about a server; the last one is about the schema."""
    address = parse_address(url)
    try:
        session = Session(await connect(address), address)
    except StoreUnavailableError as error:
        return [problem("store", str(error), "start the server, or correct the store URL and its rights")]
    try:
        await session.run(ONE_MOMENT)
        (server,) = await session.fetch("read_server")
        (more,) = await session.fetch("read_diagnosis", address.schema)
        found = [well("store", f"{address}, PostgreSQL {more['version_name']}, database of {size(more['bytes'])}")]
        found += _fitness(server)
        found += _durability(server, allow_unsafe=address.allow_unsafe)
        found += _load(more)
        found.append(await _clock(session, now))
        found += _names(more, address.schema)
        found.append(await _schema(session, more, user=server["user"]))
    except ERRORS as error:
        return [problem("store", f"{address}: {error}", "look at the log of the server")]
    finally:
        session.connection.terminate()  # Nothing was written, and nothing is to be kept.
    return found


def _fitness(server: Any) -> list[Finding]:
    wrong = []
    if server["version"] < VERSION_MIN * 10_000:
        wrong.append((f"it is PostgreSQL {server['version'] // 10_000}", f"use PostgreSQL {VERSION_MIN} or later"))
    if server["is_replica"]:
        wrong.append(("it is a replica and takes no writes", "name the primary"))
    if server["encoding"] != "UTF8":
        wrong.append((f"its encoding is {server['encoding']}", "create a database with ENCODING 'UTF8'"))
    return [problem("server", *each) for each in wrong]


def _durability(server: Any, *, allow_unsafe: bool) -> list[Finding]:
    off = [name for name in ("fsync", "synchronous_commit", "full_page_writes") if server[name] == "off"]
    if not off:
        said = ", ".join(f"{name} {server[name]}" for name in ("fsync", "synchronous_commit", "full_page_writes"))
        return [well("durability", said)]
    said = f"{' and '.join(off)} off: it forgets what it has confirmed when the power fails"
    advice = f"set {', '.join(f'{name} = on' for name in off)}"
    return [
        warning("durability", f"{said} (allow_unsafe)", advice) if allow_unsafe else problem("durability", said, advice)
    ]


def _load(more: Any) -> list[Finding]:
    found = []
    if "off" in (more["autovacuum"], more["track_counts"]):
        advice = "set autovacuum = on and track_counts = on: queues and leases are updated all the time"
        found.append(problem("autovacuum", "off", advice))
    else:
        found.append(well("autovacuum", "on"))
    used = f"{more['connections']} of {more['connections_max']} connections"
    if more["connections"] > CONNECTIONS_SHARE_MAX * more["connections_max"]:
        found.append(warning("connections", used, "raise max_connections, or put PgBouncer before it"))
    else:
        found.append(well("connections", used))
    if more["oldest_seconds"] > TRANSACTION_SECONDS_MAX:
        said = f"one has been open for {more['oldest_seconds'] / 3_600:.1f} h"
        found.append(warning("transactions", said, "end it: no row that was deleted since goes meanwhile"))
    if more["frozen_age"] > FROZEN_AGE_MAX:
        said = f"{more['frozen_age']:,} are not frozen"
        found.append(problem("transaction ids", said, "VACUUM (FREEZE): the server stops at 2,000,000,000"))
    return found


def _names(more: Any, schema: str) -> list[Finding]:
    """Whether a table of Outlive's could be taken for one of the user's own with the same name."""
    if not more["is_first"]:
        return []
    said = f"this user finds tables in schema {schema} first: `runs` or `events` of your program would be Outlive's"
    return [warning("names", said, "use a user that is not called like the schema, or name another: ?schema=NAME")]


async def _clock(session: Session, now: Callable[[], int]) -> Finding:
    sent_at = now()
    ((server_at,),) = await session.fetch("read_clock")
    differs = (server_at - (sent_at + now()) // 2) / MICROSECONDS
    said = f"the server's differs by {differs:+.3f} s"
    if abs(differs) > CLOCK_SECONDS_MAX:
        return warning("clock", said, "let both ask a time server; the server's clock counts")
    return well("clock", said)


async def _schema(session: Session, more: Any, *, user: str) -> Finding:
    schema, known = session.address.schema, len(migrations())
    ((exists, tables, is_ours),) = await session.fetch("read_identity", schema)
    if tables and not is_ours:
        return problem("schema", f"{schema} holds tables of another program", "name another: ?schema=NAME")
    if not exists or not tables:
        if not exists and not more["may_create"]:
            return problem("schema", "there is none, and this user may not create it", "GRANT CREATE ON DATABASE")
        advice = "`outlive migrate` makes it, and so does a worker that starts; or correct the store URL"
        return problem("schema", f"{schema} is empty", advice)
    if (lacking := await lack_of_rights(session, user=user)) is not None:
        return problem("schema", lacking.reason, lacking.remedy)
    ((version,),) = await session.fetch("read_version")
    if version > known:
        return problem("schema", f"{version}, and this release knows up to {known}", "upgrade outlive here")
    if version < known or not await has_functions(session):
        said = f"{version}, and this release has {known}, or other functions"
        if not more["is_owner"]:
            return problem("schema", said, "make a backup, and let its owner run `outlive migrate`")
        return warning("schema", said, "the next engine of this release migrates it; make a backup first")
    return well("schema", f"{version}, up to date")
