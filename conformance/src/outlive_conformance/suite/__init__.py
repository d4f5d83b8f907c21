"""The store conformance suite: every sentence of `outlive._kernel.store.contract`, as a test.

To check a store, write one test module with one class and one fixture, and run it with pytest:

    from functools import partial

    import pytest
    from outlive_conformance.suite import PersistentFactory, StoreConformance

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def factory(self, tmp_path):
            return PersistentFactory(partial(MyStore, tmp_path / "my.db"))

That is all: `StoreConformance` is made of one class for each facet of the contract, and each has its tests. The
factory is the one thing that the suite must know about your store. It has an empty place for each test, opens stores
there (`open`), and holds the clock that they go by (`clock`, a `ManualClock`: no test sleeps). The store is also
tried from several processes, so its factory must be picklable; `PersistentFactory` is, if your store class can be
imported. (A store that lives in one process derives from `LocalStoreConformance` instead.) A store with other needs
brings its own class: `StoreFactory` says what it must have. A store that can start runs in a user's own transaction
(`join`) says in the factory how to get one: `PersistentFactory(make, shared_transaction=...)`.

    runs         rows, and commits of many changes
    starts       trees that a change starts, and ended runs that make room
    successors   trees that end and go on as others
    reopening    trees that go on after their end
    deleting     trees that ended long ago, and blobs that no row names
    forgetting   journals that forget: a snapshot stands for all before it
    copies       trees that are read as a whole, and written into another store
    journal      appending: compare-and-swap, nothing left of a loser
    rows         reading: bytes as they were written, every kind of event, damage
    blobs        content-addressed bytes
    cells        what all workers share, changed one after the other
    items        outcomes of a batch
    streams      items in order, each once, while the writer owns the tree
    inbox        messages: accepted, refused, once
    answers      messages that are answered, with an event or without one
    messages     messages between trees, starting by message, messages for the trees of a worker
    waits        what makes a run due, parked runs, no lost wake-up
    watches      trees that wait for the end of others
    claims       one owner for each run, take-over, zombies
    orphans      how many, and how soon
    workers      sessions and leases
    queries      listing
    finding      what runs wait for and failed with, both ways round, and counts
    queues       limits, turns and lines
    eager        runs that begin at once, owned from their birth
    transactions a step that writes in the transaction of its journal
    requests     runs that are asked for in the transaction of a user
    migrations   open, close, open again
    examine      the eyes of a checker, and repairs
    audit        who did what: in the transaction of the deed, and in one chain
    schedules    what is due, changes by compare-and-swap, with the runs that they start
    checkpoints  append, load, clear: the small contract for programs that want only this
    processes    all of it from several processes
    checkpoint_processes  checkpoints from several processes
    leases       sessions that are renewed, for stores that keep leases: `StoreLeasesConformance`, a class of its own

The suite needs pytest and pytest-asyncio, in its strict or its auto mode. A test that covers a scenario of one of
the systems that Outlive learned from names it in brackets; `docs/internals/scenarios.md` has the whole table.
A test that you think is wrong is worth a report: the contract is not stable before 1.0.
"""

import pytest

FACETS = (
    "answers",
    "audit",
    "blobs",
    "cells",
    "checkpoint_processes",
    "checkpoints",
    "claims",
    "copies",
    "deleting",
    "eager",
    "examine",
    "finding",
    "forgetting",
    "inbox",
    "items",
    "journal",
    "messages",
    "migrations",
    "orphans",
    "processes",
    "queries",
    "queues",
    "reopening",
    "requests",
    "rows",
    "runs",
    "schedules",
    "starts",
    "streams",
    "successors",
    "transactions",
    "waits",
    "watches",
    "workers",
)

# Assertions that fail should show their values, as they do in a test module; pytest must know before the import.
pytest.register_assert_rewrite(*(f"{__name__}.{facet}" for facet in ("builders", *FACETS)))

from outlive_conformance.suite.factory import MemoryFactory, PersistentFactory, StoreFactory  # noqa: E402 (see above)
from outlive_conformance.suite.trial import find_failures  # noqa: E402 (see above)
from outlive_conformance.suite.whole import LocalStoreConformance, StoreConformance  # noqa: E402 (see above)

__all__ = [
    "FACETS",
    "LocalStoreConformance",
    "MemoryFactory",
    "PersistentFactory",
    "StoreConformance",
    "StoreFactory",
    "find_failures",
]
