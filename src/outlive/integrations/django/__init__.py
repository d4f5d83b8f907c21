"""Outlive in a Django project.

    INSTALLED_APPS = [..., "outlive.integrations.django"]
    OUTLIVE = {"STORE": "postgresql://shop@localhost/shop"}

Django imports the module `workflows` of every app. `manage.py outlive worker` runs what they define, and
`manage.py outlive ...` is the command line on the store of the project.

    from outlive.integrations import django as durable

    with transaction.atomic():
        order = Order.objects.create(...)
        durable.start(checkout, order.pk, id=f"order-{order.pk}")   # commits with the order, or never was
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import os
from collections.abc import Callable
from functools import cache, partial, wraps
from threading import Lock
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import close_old_connections, connections

import outlive
from outlive import Engine
from outlive._kernel.model import given
from outlive._kernel.model.worker import WorkerOptions
from outlive.engine.url import is_server, shown

if TYPE_CHECKING:
    from outlive.engine.any_engine import SyncEngine, SyncRunHandle

P = ParamSpec("P")
R = TypeVar("R")

SETTINGS = {"STORE", "OPTIONS"}
DATABASE = "SELECT pg_postmaster_start_time()::text, current_database()::text"
"""Tells one database from every other: an address cannot, because one server has many names."""


def store_url() -> str:
    """The store that the settings name.

    Raises:
        ImproperlyConfigured: they name none, or have something that means nothing.
    """
    own = getattr(settings, "OUTLIVE", None)
    if not isinstance(own, dict) or not own.get("STORE"):
        raise ImproperlyConfigured(
            'settings.OUTLIVE names no store; give OUTLIVE = {"STORE": "postgresql://user@host/database"}, '
            'or "sqlite:outlive.db", a file of its own'
        )
    if unknown := sorted(set(own) - SETTINGS):
        raise ImproperlyConfigured(f"settings.OUTLIVE has {', '.join(unknown)}; it may have STORE and OPTIONS")
    return str(own["STORE"])


def engine() -> SyncEngine:
    """The engine of this process, for views and other sync code. It runs nothing: `manage.py outlive worker` does.

    It is opened when it is first used and closed with the process. After a fork each process has one of its own.
    """
    return _process.engine()


def start(
    workflow: outlive.types.Workflow[..., R], *args: Any, using: str = "default", **options: Any
) -> SyncRunHandle[R]:
    """Start a run. Within `transaction.atomic()` the run commits with the transaction: it exists when that commits, and
    never did if it is rolled back. Elsewhere it is durable when this returns.

    Args:
        workflow: what to run, with its arguments.
        using: the database of Django's whose transaction counts.
        options: those of `engine.start`: id, tags, queue and others.

    Raises:
        ImproperlyConfigured: a transaction is open, and the store is not in its database.
    """
    if connections[using].in_atomic_block:
        options["connection"] = _connection_to_store(using)
    handle: SyncRunHandle[R] = engine().start(workflow, *args, **options)
    return handle


def _connection_to_store(using: str) -> Any:
    """The connection of Django's to the database in which the store lies too."""
    database, url = connections[using], store_url()
    name = str(database.settings_dict["NAME"])
    if not (is_server(url) and database.vendor == "postgresql" and _is_store_in(using, name, url)):
        raise ImproperlyConfigured(
            f"the store {shown(url)} is not in the database {using!r} ({name}), so this run cannot commit with the "
            "transaction that is open there; start it after the commit, with transaction.on_commit(lambda: "
            "durable.start(...)), or at once, whatever becomes of the transaction, with durable.engine().start(...)"
        )
    database.ensure_connection()
    return database.connection


@cache
def _is_store_in(using: str, name: str, url: str) -> bool:
    """Whether the store is in a database of Django's, which has that name: the test runner gives it another one."""
    with connections[using].cursor() as cursor:
        cursor.execute(DATABASE)
        here = tuple(cursor.fetchone())
    return here == asyncio.run(_database_of(url))


async def _database_of(url: str) -> tuple[str, ...]:
    from outlive._kernel.store.postgres.address import parse_address
    from outlive._kernel.store.postgres.connection import connect

    connection = await connect(parse_address(url))
    try:
        return tuple(await connection.fetchrow(DATABASE) or ())
    finally:
        await connection.close()


def step(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """`@outlive.step` for plain functions that use Django's models: before and after each attempt the connections that
    are too old or broken are closed, on the thread that runs it, as Django does around a request."""
    if function is None:
        return partial(step, **options)
    return outlive.step(**options)(_with_fresh_connections(function))


def _with_fresh_connections(function: Callable[P, R]) -> Callable[P, R]:
    if inspect.iscoroutinefunction(function):
        raise ImproperlyConfigured(f"{function.__qualname__} is async: decorate it with @outlive.step")

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return called


def worker_engine() -> Engine:
    """The engine of `manage.py outlive worker`."""
    return Engine(store_url(), **{"worker": WorkerOptions(grace_seconds=20), **_options()})


def environment() -> dict[str, str]:
    """The settings of the project as the command line of Outlive reads them.

    Raises:
        ImproperlyConfigured: see `store_url`, or OPTIONS has what an engine does not take.
        ArgumentTypeError: its `redact` is not a list of text.
    """
    options = _options()
    read = {"OUTLIVE_STORE": store_url(), "OUTLIVE_NAMESPACE": str(options.get("namespace") or "")}
    if redact := given.texts("Engine", "redact", options.get("redact", ()), like="password"):
        # With what the variable hides already: a person who looks may have to see less than the project says.
        read["OUTLIVE_REDACT"] = ",".join([*redact, os.environ.get("OUTLIVE_REDACT", "")])
    return read


def _options() -> dict[str, Any]:
    """The options of the engines of the project besides the store."""
    store_url()  # Raises if there are no settings.
    options = settings.OUTLIVE.get("OPTIONS", {})
    known = list(inspect.signature(Engine).parameters)[1:]
    if not isinstance(options, dict):
        wanted = 'give a dictionary, for example {"redact": ["password"]}'
        raise ImproperlyConfigured(f"settings.OUTLIVE: OPTIONS={options!r} cannot work: {wanted}")
    if unknown := [str(name) for name in options if name not in known]:
        raise ImproperlyConfigured(
            f"settings.OUTLIVE: OPTIONS has {', '.join(unknown)}; it may have {', '.join(known)}"
        )
    return dict(options)


class _Process:
    """The engine of one process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._engine: SyncEngine | None = None
        self._id = 0

    def engine(self) -> SyncEngine:
        """The engine, which is open."""
        with self._lock:
            if self._engine is None or self._id != os.getpid():
                self._engine = Engine(store_url(), **{**_options(), "worker": False}).sync.__enter__()
                self._id = os.getpid()
                atexit.register(self.close)
            return self._engine

    def close(self) -> None:
        """The process ends."""
        with self._lock:
            own, self._engine = self._engine, None
            if own is not None and self._id == os.getpid():
                own.__exit__(None, None, None)


_process = _Process()
