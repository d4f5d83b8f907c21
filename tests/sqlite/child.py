"""What the children of the tests do: `python child.py JOB PATH [ARGUMENT...]`.

A child says a line when it is ready and waits for a line before it goes on, so that no test has to sleep.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import apsw

import outlive
from outlive._kernel.store.contract import Outcome
from outlive._kernel.store.sqlite import SqliteStore
from outlive._kernel.store.sqlite.bells import WORKERS, Bells
from outlive.checkpoints import Checkpoint
from outlive.errors import CommitUnknownError, OutliveError, StoreError
from outlive.errors.store import DuplicateCheckpointError
from outlive.testing.clock import EPOCH
from outlive_conformance.suite.builders import begin, blob, claim, hire, new_tree, stepped

UNPRIVILEGED = 65_534


def say(*words: object) -> None:
    """Tell the test something."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def hear() -> str:
    """Wait for the test."""
    return sys.stdin.readline().strip()


def store_at(path: str) -> SqliteStore:
    """A store whose clock stands still."""
    return SqliteStore(path, clock=lambda: EPOCH)


# -- Jobs ------------------------------------------------------------------------------------------------------


async def create(path: str, run_id: str) -> None:
    """Open, together with all the others, and write."""
    say("ready")
    hear()
    store = store_at(path)
    await store.open()
    await begin(store, run_id)
    await store.close()
    say("done")


async def work(path: str, worker_id: str) -> None:
    """Claim what is due, and live until standard input says otherwise."""
    store = store_at(path)
    await store.open()
    await hire(store, worker_id)
    say(*await claim(store, worker_id))
    hear()
    await store.close()


async def work_and_fork(path: str, worker_id: str) -> None:
    """Claim what is due, and leave a forked child that outlives this process."""
    store = store_at(path)
    await store.open()
    await hire(store, worker_id)
    names = await claim(store, worker_id)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"born")
        hear()
        os._exit(0)
    os.read(reading, 4)
    say(child, *names)
    signal.pause()


def die_at_every_statement(path: str) -> None:
    """Open a new file again and again, and be killed later each time: one statement in the first migrations, some in
    those behind them, which are run by the same code. Say how often that was."""
    for trial, count in enumerate([*range(1, 31), *range(31, 1_000, 5)]):
        child = os.fork()
        if not child:
            apsw.connection_hooks.append(Countdown(count).watch)
            asyncio.run(_open_and_close(f"{path}-{count}"))
            os._exit(0)
        if (code := wait_for(child)) != -signal.SIGKILL:
            say(trial, code)
            return


class Countdown:
    """Kills this process before the n-th statement of all its connections."""

    def __init__(self, count: int) -> None:
        self._left = count

    def watch(self, connection: apsw.Connection) -> None:
        """Count the statements of a new connection too."""
        connection.set_exec_trace(self._step)

    def _step(self, *_: object) -> bool:
        self._left -= 1
        if not self._left:
            os.kill(os.getpid(), signal.SIGKILL)
        return True


async def _open_and_close(path: str) -> None:
    store = store_at(path)
    await store.open()
    await store.close()


async def open_as_nobody(path: str) -> None:
    """Try as a user who may not write here."""
    if os.getuid() == 0:
        with tempfile.TemporaryDirectory() as folder:  # Load all of it now: that user may not read a checkout in /root.
            scratch = store_at(f"{folder}/scratch.db")
            await scratch.open()
            await scratch.close()
        os.setgid(UNPRIVILEGED)
        os.setuid(UNPRIVILEGED)
    store = store_at(path)
    try:
        await store.open()
    except OutliveError as error:
        say(type(error).__name__, error)
    else:
        say("opened")


async def create_without_umask(path: str) -> None:
    """Say which rights the files have that a store makes, when nothing restricts them."""
    os.umask(0)
    store = store_at(path)
    await store.open()
    await begin(store)
    for file in sorted(Path(path).parent.iterdir()):
        say(file.name, oct(file.stat().st_mode & 0o777))
    await store.close()
    say("end")


async def fail_to_write(path: str) -> None:
    """Let every write beyond the present size of the WAL fail with an I/O error, then let it succeed again."""
    store = store_at(path)
    await store.open()
    tree = await begin(store)
    wal = Path(f"{path}-wal").stat().st_size
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal + 1_000, unlimited[1]))
    for change in (tree.change(stepped(store)), tree.change(stepped(store), blobs=[blob(b"x" * 100_000)])):
        try:
            await store.commit([change])
        except StoreError as error:
            say(type(error) is CommitUnknownError, error)
    resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    say(len(await store.read_journal(tree.journal)))
    say((await tree.try_write(stepped(store))).value, len(await store.read_journal(tree.journal)))
    await store.close()


async def fail_to_append(path: str) -> None:
    """Append a checkpoint to a disk that fails in the middle of the commit, then again to one that works."""
    row = Checkpoint(1, "PAY", output=b"x" * 100_000)
    async with (
        outlive.checkpoints.open_store(f"sqlite:{path}") as mine,
        outlive.checkpoints.open_store(f"sqlite:{path}") as theirs,
    ):
        await mine.append("run-1", Checkpoint(0, "RESERVE"))
        wal = Path(f"{path}-wal").stat().st_size
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (wal + 1_000, unlimited[1]))
        for run_id in ("run-1", "run-2"):
            try:
                await mine.append(run_id, row)
            except StoreError as error:
                say(type(error) is CommitUnknownError)
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
        await mine.append("run-1", row)
        say([it.sequence for it in await theirs.load_run("run-1")])
        await theirs.append("run-2", row)
        try:
            await mine.append("run-2", row)
        except DuplicateCheckpointError as error:
            say(error.run_id, error.sequence)


def use_after_fork(path: str) -> None:
    """Fork while a loop in another thread keeps the store at work, and use the store in the child."""
    store, is_at_work = store_at(path), threading.Event()
    outcomes: list[Outcome] = []

    async def write() -> None:
        await store.open()
        for number in range(200):
            outcomes.extend(outcome for outcome, _ in await store.commit([new_tree(store, f"run-{number}")]))
            is_at_work.set()
        await store.close()

    thread = threading.Thread(target=lambda: asyncio.run(write()), daemon=True)
    thread.start()
    is_at_work.wait()
    child = os.fork()
    if not child:
        _misuse(store, path)
        return  # The way out that frees everything, also the connections.
    code = wait_for(child)
    thread.join()
    say(code, outcomes.count(Outcome.COMMITTED))


def wait_for(child: int) -> int:
    """The exit code of a forked child."""
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _misuse(store: SqliteStore, path: str) -> None:
    """Say what every way of using an inherited file brings, and what another file brings."""
    calls: list[Callable[[], Coroutine[Any, Any, object]]] = [
        lambda: store.find_run("run-1"),
        lambda: store.commit([new_tree(store, "child")]),
        store.open,
        lambda: _open_and_close(path),
        lambda: _open_and_close(f"{path}-of-child"),
    ]
    for call in calls:
        try:
            asyncio.run(call())
        except StoreError as error:
            say(error)
    try:
        store.open_beat("worker")
    except StoreError as error:
        say(error)


async def leave_a_fork(folder: str) -> None:
    """Listen, fork, and die without a word; the fork lives until the test says something."""
    Bells(Path(folder), WORKERS).listen(lambda run_id: None)
    if os.fork() == 0:
        say("forked")
        hear()
    os._exit(0)


def main() -> None:
    """Do the job that the command line names."""
    job, *arguments = sys.argv[1:]
    result = globals()[job](*arguments)
    if result is not None:
        asyncio.run(result)


if __name__ == "__main__":
    main()
