"""The options of a worker, with its name and its lease; and the id of a session, which carries the name.

A journal names the sessions that moved its runs. The row of a session is deleted when it ends, so the id itself says
which worker it was: a person who finds that a worker was lost sees which one.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from outlive._kernel.model import given
from outlive._kernel.model.queue import DEFAULT, Queue, queue_names
from outlive.errors import ArgumentTypeError, InvalidArgumentError

LEASE_SECONDS_MIN = 1.0
TAKES_MARK = "outlive.takes:"
"""The prefix of the entries in a worker's list of definitions that name the queues from which it takes."""
NAME_CHARACTERS_MAX = 80
"""How much of a name is in the ids of its sessions."""
UNIQUE_CHARACTERS = 12
LEASE_HASH_CHARACTERS = 32
"""How much of the hash of a lease is in the id of a session: 128 bits, for which no other lease can be found."""


def worker_name(name: object) -> str:
    """A name that tells one worker from the others."""
    plain = given.text("WorkerOptions", "name", name, like="worker-1")
    if not plain.strip():
        wanted = "leave it out, or give every worker a name of its own, for example name='worker-1'"
        raise InvalidArgumentError("WorkerOptions", "name", name, wanted)
    return plain


def remote_name(worker: object) -> str:
    """The name of a program outside that takes tasks: `remote`, and what it calls itself, if it says so."""
    where = "engine.tasks.claim"
    plain = given.text(where, "worker", worker, like="resizer-1", least=0)
    if not plain.isprintable():
        wanted = "it is shown in logs and lists: give one line without control characters, for example 'resizer-1'"
        raise InvalidArgumentError(where, "worker", worker, wanted)
    return f"remote {plain}".rstrip()


def session_id(name: str, unique: str) -> str:
    """The id of a session of the worker with this name; the end of `unique` tells it from its other sessions."""
    return f"{name[:NAME_CHARACTERS_MAX]}#{unique[-UNIQUE_CHARACTERS:]}"


def remote_session_id(name: str, lease: str) -> str:
    """The id of the session of a program outside that has this secret lease. Everyone may see the id: it has only the
    hash of the lease."""
    return f"{name[:NAME_CHARACTERS_MAX]}#{_lease_hash(lease)}"


def is_lease_of(lease: str, session_id: str) -> bool:
    """Whether this is the secret lease of a session, in the same time whether it is or not."""
    return hmac.compare_digest(_lease_hash(lease).encode(), session_id.rpartition("#")[2].encode())


def name_in(session_id: str) -> str:
    """The name of the worker that had this session."""
    return session_id.rpartition("#")[0] or session_id


def _lease_hash(lease: str) -> str:
    return hashlib.sha256(lease.encode("utf-8", "surrogatepass")).hexdigest()[:LEASE_HASH_CHARACTERS]


def lease_of(lease_seconds: object) -> float:
    """How long a worker without a sign of life is taken for alive."""
    seconds = given.seconds("WorkerOptions", "lease_seconds", lease_seconds)
    if seconds < LEASE_SECONDS_MIN:
        wanted = f"it is too short; give at least {LEASE_SECONDS_MIN:g}, for example lease_seconds=10"
        raise InvalidArgumentError("WorkerOptions", "lease_seconds", lease_seconds, wanted)
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How the worker of an engine works: `Engine(url, worker=outlive.types.WorkerOptions(queues=["emails"]))`."""

    name: str | None = None
    """A name that is this worker's alone. When it comes back after a crash, on whatever machine, it takes its own runs
    at once; an older session of the same name is ended. The host and the process unless given."""
    queues: Sequence[Queue | str] | None = None
    """The queues that it takes runs from, by name and in this order; "default" stands for the runs without one. All
    unless given, each of them first in its turn."""
    lease: str = "store"
    """The keeper of its lease: "store", "etcd://host:2379,host:2379/prefix", or "none" for a process that shares the
    store with no other."""
    lease_seconds: float = 10.0
    """After how long without a sign of life others take over its runs. (A killed process is noticed at once by others
    on the same machine; the lease is for hangs.)"""
    grace_seconds: float = 5.0
    """How long running steps may take to finish when the engine stops."""
    exit_when_stalled: bool | None = None
    """Whether the process ends, with code 70, when its event loop has been blocked for as long as a lease; else only
    the session ends, and a new one begins when the loop turns again. Unless given, the process of `outlive worker` ends
    and others do not."""
    schedules: bool = True
    """Whether it declares the schedules of its code, and starts runs of the schedules in the store."""
    flows: bool = True
    """Whether it runs the flows of the library in the store; see `Engine.flows`."""
    tune: bool = True
    """Whether it may set two switches of the interpreter for the whole process (decision 0007)."""

    def __post_init__(self) -> None:
        if self.name is not None:
            given.keep(self, name=worker_name(self.name))
        if self.queues is not None:
            given.keep(self, queues=tuple(name or DEFAULT for name in queues_of(self) or ()))
        if self.exit_when_stalled is not None:
            given.flag("WorkerOptions", "exit_when_stalled", self.exit_when_stalled)
        for name in ("schedules", "flows", "tune"):
            given.flag("WorkerOptions", name, getattr(self, name))
        given.keep(
            self,
            lease_seconds=lease_of(self.lease_seconds),
            grace_seconds=given.seconds("WorkerOptions", "grace_seconds", self.grace_seconds, or_zero=True),
        )


def queues_of(options: WorkerOptions) -> tuple[str, ...] | None:
    """The names of the queues of a worker as the store has them, "" for the runs without one; None for all."""
    return None if options.queues is None else queue_names("WorkerOptions", options.queues)


def takes_marks(queues: Sequence[str] | None) -> tuple[str, ...]:
    """The entries in a worker's list of definitions that say from which queues it takes; none if it takes from all."""
    return () if queues is None else tuple(f"{TAKES_MARK}{name or DEFAULT}" for name in queues)


def taken_queues(definitions: Iterable[str]) -> tuple[str, ...] | None:
    """The queues from which a worker with these definitions takes, "default" for the runs without one; None for
    all."""
    return tuple(each.removeprefix(TAKES_MARK) for each in definitions if each.startswith(TAKES_MARK)) or None


def worker_options(worker: object) -> tuple[WorkerOptions, bool]:
    """How the worker of an engine works, and whether there is one: `Engine(url, worker=...)`.

    Raises:
        ArgumentTypeError: it is neither options nor True or False.
    """
    if isinstance(worker, WorkerOptions):
        return worker, True
    if isinstance(worker, bool):
        return WorkerOptions(), worker
    wanted = "give True, False, or for example worker=outlive.types.WorkerOptions(name='worker-1')"
    raise ArgumentTypeError("Engine", "worker", worker, wanted)
