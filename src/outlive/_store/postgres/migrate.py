"""The schema, brought up to date by numbered files, and the servers that we refuse.

`migrations/0001_pre_create.sql` is version 1, and so on without a gap. A migration and its record in the table
`migrations` are one transaction under one lock: of any number of processes that start at once one does the work and the
others find it done, and a process that is killed anywhere leaves a version, never half of one. Nothing is filled into a
migration, so a file that was released never changes; it names tables without the schema, which is the search path.

Functions are no part of a version: those of this release are created when they are missing (`query`).
"""

from __future__ import annotations

import asyncpg

from outlive._store.postgres.connection import Session
from outlive._store.postgres.query import functions_for, migrations, quoted
from outlive.errors import NotADatabaseError, SchemaTooNewError, SchemaTooOldError, UnfitServerError

VERSION_MIN = 14


async def open_database(session: Session) -> None:
    """Make the schema one of this release; refuse, without writing, a server or a schema that will not do.

    Raises:
        UnfitServerError: this server cannot keep what we promise.
        NotADatabaseError: the schema belongs to another program.
        SchemaTooNewError: a later release was here.
    """
    database, user = await check_server(session)
    try:
        if await _read_version(session) < len(migrations()) or not await has_functions(session):
            await _migrate(session)
    except asyncpg.InsufficientPrivilegeError as error:
        ((exists, _, _),) = await session.fetch("read_identity", session.address.schema)
        raise _lack_of_rights(session, database=database, user=user, exists=exists) from error


async def check_database(session: Session) -> None:
    """See that the schema is one of this release, on a server that will do; nothing is written.

    Raises:
        UnfitServerError, NotADatabaseError, SchemaTooNewError: as `open_database`.
        SchemaTooOldError: it is one of an earlier release, or not there.
    """
    database, user = await check_server(session)
    try:
        version = await _read_version(session)
        is_current = version == len(migrations()) and await has_functions(session)
    except asyncpg.InsufficientPrivilegeError as error:
        raise _lack_of_rights(session, database=database, user=user, exists=True) from error
    if not is_current:
        raise SchemaTooOldError(str(session.address), version, len(migrations()))


def _lack_of_rights(session: Session, *, database: str, user: str, exists: bool) -> UnfitServerError:
    """What its owner has to do, ready to be pasted."""
    address, schema = str(session.address), quoted(session.address.schema)
    if not exists:
        grant = f"GRANT CREATE ON DATABASE {database} TO {user}"
        return UnfitServerError(address, f"user {user} may not create the schema", f"let the owner run: {grant}")
    things = ("SCHEMA", "ALL TABLES IN SCHEMA", "ALL SEQUENCES IN SCHEMA")
    grants = "; ".join(f"GRANT ALL ON {thing} {schema} TO {user}" for thing in things)
    return UnfitServerError(address, f"user {user} may not use the schema", f"let its owner run: {grants}")


async def check_server(session: Session) -> tuple[str, str]:
    """Refuse a server that would lose what it has confirmed, or that takes no writes; else who we are, and where.

    Both are names as SQL has them.
    """
    address = session.address
    (server,) = await session.fetch("read_server")
    if server["version"] < VERSION_MIN * 10_000:
        found = server["version"] // 10_000
        raise UnfitServerError(str(address), f"it is PostgreSQL {found}", f"use PostgreSQL {VERSION_MIN} or later")
    if server["is_replica"]:
        raise UnfitServerError(str(address), "it is a replica and takes no writes", "name the primary")
    if server["is_read_only"]:
        raise UnfitServerError(
            str(address), "its transactions are read-only", "set default_transaction_read_only=off for this user"
        )
    if server["encoding"] != "UTF8":
        raise UnfitServerError(
            str(address), f"its encoding is {server['encoding']}", "create a database with ENCODING 'UTF8'"
        )
    if server["isolation"] != "read committed":
        raise UnfitServerError(
            str(address),
            f"its transactions are {server['isolation']}",
            "set default_transaction_isolation='read committed' for this user",
        )
    for name in ("fsync", "synchronous_commit", "full_page_writes"):
        if server[name] == "off" and not address.allow_unsafe:
            raise UnfitServerError(
                str(address),
                f"{name} is off, so it forgets what it has confirmed when the power fails",
                f"set {name}=on, or add ?allow_unsafe=true to the address where that does not matter",
            )
    return server["database"], server["user"]


async def _read_version(session: Session) -> int:
    """The version of the schema; 0 for none."""
    schema = session.address.schema
    ((exists, tables, is_ours),) = await session.fetch("read_identity", schema)
    if not exists or not tables:
        return 0
    if not is_ours:
        raise NotADatabaseError(str(session.address), "the schema holds tables of another program")
    ((version,),) = await session.fetch("read_version")
    if version > len(migrations()):
        raise SchemaTooNewError(str(session.address), version, len(migrations()))
    assert isinstance(version, int)
    return version


async def _migrate(session: Session) -> None:
    schema = session.address.schema
    async with session.transaction():
        await session.fetch("lock_migrations", schema)
        version = await _read_version(session)
        ((exists, _, _),) = await session.fetch("read_identity", schema)
        if not exists:
            await session.fetch("create_schema")
        await session.run(f"SET LOCAL search_path TO {quoted(schema)}")
        for number, file in enumerate(migrations()[version:], version + 1):
            await session.run(file.read_text("utf-8"))
            await session.fetch("record_migration", number, file.stem)
        if not await has_functions(session):
            await session.run(functions_for(schema))


async def has_functions(session: Session) -> bool:
    """Whether the functions of this release are there; they are made together."""
    ((found,),) = await session.fetch("find_functions", session.address.schema)
    return bool(found)
