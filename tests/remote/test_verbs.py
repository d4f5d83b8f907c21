"""A connection has the verbs of an engine, or says why not: found by looking at both."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import pytest

from outlive.client.approvals import Approvals
from outlive.client.asks import Asks
from outlive.client.audit_log import AuditLog
from outlive.client.batch import Batch
from outlive.client.batches import Batches
from outlive.client.bulk_operations import BulkOperation, BulkOperations
from outlive.client.dead_letters import DeadLetters
from outlive.client.decision_links import Links
from outlive.client.definitions import Workflows
from outlive.client.events.verbs import Events
from outlive.client.flows.verbs import Flows
from outlive.client.handle import RunHandle
from outlive.client.keys import Keys
from outlive.client.promises import Promises
from outlive.client.queues import Queues
from outlive.client.schedules.verbs import Schedules
from outlive.client.tasks import Tasks
from outlive.client.workers import Workers
from outlive.engine import Engine
from outlive.remote import Remote, RemoteBatch, RemoteRun, connect
from outlive.remote.operating import RemoteBulkOperation
from outlive.remote.sync import SyncRemote, SyncRemoteRun

ELSEWHERE: dict[type, dict[str, str]] = {
    Engine: {
        "asgi": "it is the server",
        "lifespan": "it is the server",
        "configured": "a connection has no configuration",
        "view": "the operations of the API are made of it",
        "export": "a copy has nothing hidden: it needs the store",
        "import_run": "it writes a journal: it needs the store",
        "checkpoints": "for programs that keep their own state in the store",
        "quotas": "an operator of the store sets them: `outlive namespaces`",
    },
    RunHandle: {"export": "as of the engine"},
    Batch: {},
    BulkOperations: dict.fromkeys(("apply", "page", "progress"), "for the engine itself"),
    BulkOperation: {},
    Queues: {},
    Workers: {},
    Schedules: {},
    Tasks: {},
    Approvals: {"links": "an attribute there"},
    Promises: {},
    Asks: {},
    DeadLetters: {},
    Batches: {},
    Workflows: {},
    Links: {"show": "a page for people: GET /decide/{token}"},
    Flows: {"find": "for the engine itself", "start_short": "for the engine itself"},
    Keys: {"find": "for the server itself"},
    AuditLog: dict.fromkeys(("acting", "append", "has_done", "record"), "the server writes the log"),
    Events: dict.fromkeys(("deliver", "now", "take", "webhooks"), "for workers and the server itself"),
}
"""Verbs that need the store, and why."""
NOT_TAKEN = {
    "connection": "a transaction of the caller is one of the store",
    "debounce": "the workflow is not here",
    "throttle": "the workflow is not here",
    "unknown": "only names them",
    "archive": "it would be written where the server is",
    "redacted": "a server gives nothing else",
}
"""Arguments that need the store, and why."""
HERE = connect("http://127.0.0.1:9")
PAIRS: list[tuple[type, Any]] = [
    (Engine, Remote),
    (RunHandle, RemoteRun),
    (Batch, RemoteBatch),
    (BulkOperations, type(HERE.bulk)),
    (BulkOperation, RemoteBulkOperation),
    (Queues, type(HERE.queues)),
    (Workers, type(HERE.workers)),
    (Schedules, type(HERE.schedules)),
    (Tasks, type(HERE.tasks)),
    (Approvals, type(HERE.approvals)),
    (Links, type(HERE.approvals.links)),
    (Promises, type(HERE.promises)),
    (Asks, type(HERE.asks)),
    (DeadLetters, type(HERE.dead_letters)),
    (Batches, type(HERE.batches)),
    (Workflows, type(HERE.workflows)),
    (Flows, type(HERE.flows)),
    (Keys, type(HERE.keys)),
    (AuditLog, type(HERE.audit)),
    (Events, type(HERE.events)),
]


def verbs_of(kind: type) -> dict[str, Any]:
    """Its public verbs and what it has verbs in, by name."""
    return {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}


def arguments_of(verb: Any) -> set[str]:
    """The names of its arguments, also those that a typed dictionary has; `**` if it takes any."""
    found: set[str] = set()
    for each in inspect.signature(verb).parameters.values():
        if each.kind is not each.VAR_KEYWORD:
            found.add(each.name)
            continue
        hint = typing.get_type_hints(verb, localns={"Remote": Remote}).get(each.name)
        options = typing.get_args(hint)
        found |= set(typing.get_type_hints(options[0])) if options else {"**" if hint is Any else each.name}
    return found


@pytest.mark.parametrize(("ours", "remote"), PAIRS, ids=lambda it: it.__name__)
def test_a_connection_has_every_verb_of_an_engine(ours: type, remote: type) -> None:
    """Or the table says why not; and what the table says is so."""
    there = verbs_of(remote).keys() | (vars(HERE).keys() if remote is Remote else set())
    missing = verbs_of(ours).keys() - there

    assert missing == ELSEWHERE[ours].keys()


@pytest.mark.parametrize(("ours", "remote"), PAIRS, ids=lambda it: it.__name__)
def test_a_verb_of_a_connection_takes_what_that_of_an_engine_does(ours: type, remote: type) -> None:
    """By the same names."""
    theirs = verbs_of(remote)
    lacking = {
        name: missing
        for name, verb in verbs_of(ours).items()
        if inspect.isfunction(verb) and name in theirs
        if "**" not in (taken := arguments_of(theirs[name]))
        if (missing := arguments_of(verb) - taken - NOT_TAKEN.keys())
    }

    assert lacking == {}


@pytest.mark.parametrize(("verbs", "sync"), [(Remote, SyncRemote), (RemoteRun, SyncRemoteRun)])
def test_type_checkers_know_every_verb_of_sync_code(verbs: type, sync: type) -> None:
    """A verb without a line in `remote/sync.py` would be of any type."""
    source = inspect.getsource(sync)
    known = {name for name in verbs_of(verbs) if f" {name} = " in source or f"def {name}(" in source}
    awaited = {name for name, verb in verbs_of(verbs).items() if inspect.isfunction(verb)}

    assert awaited - known <= {"start_batch", "get_batch", "follow"}
