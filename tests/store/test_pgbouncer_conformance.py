"""The PostgreSQL store keeps the contract behind PgBouncer, where no session is ours.

Every change is tried with this without PgBouncer, and with `tests/postgres/test_pgbouncer.py`.
"""

from functools import partial
from itertools import count

import pytest

from outlive._kernel.store.postgres import PostgresStore
from outlive_conformance.servers.pgbouncer import PgBouncer
from outlive_conformance.servers.postgres import PostgresServer
from outlive_conformance.suite import LocalStoreConformance, StoreFactory
from outlive_conformance.suite.checkpoint_processes import CheckpointProcessesConformance
from outlive_conformance.suite.processes import ProcessesConformance
from tests.store.test_postgres_conformance import PostgresFactory, transaction_of

pytestmark = pytest.mark.slow
_schemas = count(1)


class BehindPgBouncer:
    """Two connections of the server for all clients."""

    @pytest.fixture
    def factory(
        self, request: pytest.FixtureRequest, postgres_server: PostgresServer, postgres_place: str, pgbouncer: PgBouncer
    ) -> StoreFactory:
        """An empty schema for each test; a new one for tests of opening."""
        postgres_server.execute("DROP TABLE IF EXISTS notes", database=postgres_place)
        if "open" in request.node.name:
            schema = f"bounced {next(_schemas)}"
            url = f"{pgbouncer.url(postgres_place)}?schema={schema}&allow_unsafe=true&pgbouncer=true"
        else:
            url = request.getfixturevalue("pgbouncer_url")
        user = partial(transaction_of, postgres_server.url(postgres_place))
        return PostgresFactory(partial(PostgresStore, url), shared_transaction=user)


class TestPostgresStoreBehindPgBouncer(BehindPgBouncer, LocalStoreConformance):
    """What one process can see."""


class TestProcessesBehindPgBouncer(BehindPgBouncer, ProcessesConformance, CheckpointProcessesConformance):
    """What many can."""
