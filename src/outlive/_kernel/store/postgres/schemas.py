"""The schemas of a database that hold a store."""

from __future__ import annotations

from outlive._kernel.store.postgres.address import PostgresAddress
from outlive._kernel.store.postgres.connection import connect
from outlive._kernel.store.postgres.query import statements


async def list_schemas(address: PostgresAddress) -> list[str]:
    """The schemas with a store that this user may see.

    Raises:
        StoreUnavailableError: the server cannot be reached.
    """
    connection = await connect(address)
    try:
        return [row["name"] for row in await connection.fetch(statements(address.schema)["list_schemas"])]
    finally:
        await connection.close()
