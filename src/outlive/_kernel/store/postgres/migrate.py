"""The schema, brought up to date by numbered files, and the servers that we refuse.

`migrations/0001_pre_create.sql` is version 1, and so on without a gap. A migration and its record in the table
`migrations` are one transaction under one lock: of any number of processes that start at once one does the work and the
others find it done, and a process that is killed anywhere leaves a version, never half of one. Nothing is filled into a
migration, so a file that was released never changes; it names tables without the schema, which is the search path.

Functions are not part of a version: those of this release are created when they are missing (`query`).
"""

from __future__ import annotations

import asyncpg

from outlive._kernel.store.postgres.connection import Session
from outlive._kernel.store.postgres.query import functions_for, migrations, quoted, tables
from outlive.errors.store import NotADatabaseError, SchemaTooNewError, SchemaTooOldError, UnfitServerError

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
        is_current = await _is_current(session)
    except asyncpg.InsufficientPrivilegeError as error:
        raise (await lack_of_rights(session, user=user) or _unexplained(session, user, error)) from error
    if not is_current:
        try:
            await _migrate(session)
        except asyncpg.InsufficientPrivilegeError as error:
            raise await _may_not_migrate(session, database=database, user=user) from error
    if (lacking := await lack_of_rights(session, user=user)) is not None:
        raise lacking


async def check_database(session: Session) -> None:
    """See that the schema is one of this release, on a server that will do; nothing is written.

    Raises:
        UnfitServerError, NotADatabaseError, SchemaTooNewError: as `open_database`.
        SchemaTooOldError: it is one of an earlier release, or not there.
    """
    _, user = await check_server(session)
    try:
        version = await _read_version(session)
        is_current = await _is_current(session)
    except asyncpg.InsufficientPrivilegeError as error:
        raise (await lack_of_rights(session, user=user) or _unexplained(session, user, error)) from error
    if not is_current:
        raise SchemaTooOldError(str(session.address), version, len(migrations()))


async def lack_of_rights(session: Session, *, user: str) -> UnfitServerError | None:
    """An error with the statements that the owner of the schema must run so that this user may work with it; None if
    the user may already.

    No right to create anything is asked for: who only works needs none, and could plant tables and functions with it.
    """
    lacking = await session.fetch("read_rights", session.address.schema, tables())
    if not lacking:
        return None
    schema = quoted(session.address.schema)
    grants = "; ".join(f"GRANT {row['right_on']} {schema} TO {user}" for row in lacking)
    reason = f"user {user} may not use the schema"
    return UnfitServerError(str(session.address), reason, f"let its owner run: {grants}")


async def _may_not_migrate(session: Session, *, database: str, user: str) -> UnfitServerError:
    ((exists, _, _),) = await session.fetch("read_identity", session.address.schema)
    place = str(session.address)
    if not exists:
        grant = f"GRANT CREATE ON DATABASE {database} TO {user}"
        return UnfitServerError(place, f"user {user} may not create the schema", f"let the owner run: {grant}")
    ((owner,),) = await session.fetch("read_owner", session.address.schema)
    reason = f"user {user} may not bring the schema up to this release"
    return UnfitServerError(place, reason, f"let its owner ({owner}) run `outlive migrate`")


def _unexplained(session: Session, user: str, error: Exception) -> UnfitServerError:
    """A right is missing that no table of rights shows, such as one that row security takes away."""
    return UnfitServerError(str(session.address), f"user {user}: {error}", "look at the log of the server")


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


async def _is_current(session: Session) -> bool:
    return await _read_version(session) == len(migrations()) and await has_functions(session)


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
