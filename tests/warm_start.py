"""Python programs that begin as copies of a process that has imported Outlive already.

The tests start hundreds of programs, and nearly all that such a program costs is the start of Python and the imports.
So on Linux one process is started in this way, the nursery, and every other program is a fork of it, which takes a
tenth. What a test holds is a `subprocess.Popen` as ever: the program is a child of the test process, has arguments, an
environment, a folder, files and a process id of its own, and is killed and waited for like any other.

A program that asks for something else than these, or for other settings of Python, is started by Python itself.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import multiprocessing.process
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any, ClassVar

ROOT = Path(__file__).parents[1]
OURS = [str(ROOT), str(ROOT / "src")]
IMPORTED = [
    "outlive.engine.engine",
    "outlive.cli.worker",
    "outlive.testing",
    "outlive_conformance.suite",
    "outlive._kernel.store.sqlite",
    "outlive._kernel.store.postgres",
]
PACKAGES = ("outlive.", "tests.", "proof.")
"""Whose modules are programs; that of pytest, for example, is not."""
OPTIONS = {"stdin", "stdout", "stderr", "env", "cwd", "text", "start_new_session"}
"""The options of `Popen` that the nursery knows."""
PR_SET_CHILD_SUBREAPER = 36


class WarmPopen(subprocess.Popen[Any]):
    """A program; see above."""

    nursery: ClassVar[Nursery | None] = None
    beginning: ClassVar[threading.Lock] = threading.Lock()
    """Two threads that start the first programs at once begin one nursery."""

    def __init__(self, args: Any, **options: Any) -> None:
        self._order: dict[str, Any] | None = None
        if set(options) <= OPTIONS:
            self._order = order_for(args, options)
        super().__init__(args, **options)

    def _execute_child(self, args: Any, *rest: Any) -> None:
        if self._order is None:
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        with WarmPopen.beginning:
            if WarmPopen.nursery is None:
                WarmPopen.nursery = Nursery()
        pipes = rest[9:15]
        theirs = [pipe if pipe != -1 else number for number, pipe in enumerate((pipes[0], pipes[3], pipes[5]))]
        self.pid = WarmPopen.nursery.fork(self._order, theirs)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def order_for(args: Any, options: dict[str, Any]) -> dict[str, Any] | None:
    """What a copy of the nursery is to do; None if it must be another Python."""
    program: dict[str, Any]
    match args:
        case [sys.executable, "-m", str(module), *more] if module.startswith(PACKAGES):
            program = {"module": module, "argv": [module, *more]}
        case [sys.executable, "-W", "error", "-m", str(module), *more] if module.startswith(PACKAGES):
            program = {"module": module, "argv": [module, *more], "strict": True}
        case [sys.executable, "-W", "error", str(script), *more] if script.endswith(".py"):
            program = {"argv": [script, *more], "strict": True}
        case [sys.executable, str(script), *more] if script.endswith(".py"):
            program = {"argv": [script, *more]}
        case _:
            return None
    environment = dict(os.environ if options.get("env") is None else options["env"])
    if settings_in(environment) != SETTINGS or not {*PATHS} <= {*paths_in(environment)} <= {*PATHS, *OURS}:
        return None
    return program | {
        "environment": environment,
        "folder": str(options.get("cwd") or Path.cwd()),
        "session": bool(options.get("start_new_session")),
    }


def settings_in(environment: Any) -> dict[str, str]:
    """What Python reads when it starts, apart from where it finds modules."""
    return {key: it for key, it in environment.items() if key.startswith("PYTHON") and key != "PYTHONPATH"}


def paths_in(environment: Any) -> list[str]:
    """Where Python is to look for modules first."""
    return [path for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]


SETTINGS, PATHS = settings_in(os.environ), paths_in(os.environ)


class Nursery:
    """The process whose copies are the programs; it ends when this process does."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair()
        self._one_at_a_time = threading.Lock()
        self._libc = ctypes.CDLL(None)
        code = f"import tests.warm_start as it; it.become_next({theirs.fileno()})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=os.environ | SETTINGS | {"PYTHONPATH": os.pathsep.join(PATHS)},
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        theirs.close()

    def fork(self, order: dict[str, Any], files: list[int]) -> int:
        """Begin a program with these as its standard files; its process id."""
        message = json.dumps(order).encode()
        with self._one_at_a_time:
            # The nursery leaves the new process without a parent, and so it is ours.
            self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
            try:
                socket.send_fds(self._channel, [len(message).to_bytes(4)], files)
                self._channel.sendall(message)
                return int.from_bytes(receive(self._channel, 4))
            finally:
                self._libc.prctl(PR_SET_CHILD_SUBREAPER, 0)

    def close(self) -> None:
        """End it; the programs go on."""
        self._channel.close()
        self._process.wait()


def receive(channel: socket.socket, size: int) -> bytes:
    """So many bytes."""
    received = b""
    while len(received) < size:
        more = channel.recv(size - len(received))
        if not more:
            raise EOFError("the nursery has ended; what it said is above")
        received += more
    return received


# -- In the nursery --------------------------------------------------------------------------------------------


def become_next(channel: int) -> None:
    """Fork for every order; a fork becomes the program, and ends as it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in IMPORTED:
            importlib.import_module(name)
    gc.freeze()
    order, files = serve(socket.socket(fileno=channel))
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    begin(order)


def serve(channel: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Returns in each fork, with what it is to do and its standard files."""
    while True:
        size, files, _, _ = socket.recv_fds(channel, 4, 3)
        if not size:
            os._exit(0)  # The tests are over.
        order = json.loads(receive(channel, int.from_bytes(size)))
        reading, writing = os.pipe()
        between = os.fork()
        if not between:
            between = os.getpid()
            if child := os.fork():
                os.write(writing, child.to_bytes(4))
                os._exit(0)
            # No call waits for another parent: a program that asks for its parent at once must not see one that ends.
            while os.getppid() == between:
                time.sleep(0.001)
            channel.close()
            os.close(reading)
            os.close(writing)
            return order, files
        for file in [writing, *files]:
            os.close(file)
        child = int.from_bytes(os.read(reading, 4))
        os.close(reading)
        os.waitpid(between, 0)
        channel.sendall(child.to_bytes(4))


def begin(order: dict[str, Any]) -> None:
    """Be a program, as if Python had just started it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if order["session"]:
        os.setsid()
    os.chdir(order["folder"])
    multiprocessing.process.ORIGINAL_DIR = order["folder"]  # type: ignore[attr-defined]
    os.environ.clear()
    os.environ.update(order["environment"])
    if order.get("strict"):
        sys.warnoptions.append("error")
        warnings.simplefilter("error")
    main = sys.modules["__main__"]
    del main.it
    sys.argv[:] = order["argv"]
    given = paths_in(os.environ)
    sys.path[:] = [order["folder"], *given, *(path for path in sys.path[1 + len(PATHS) :] if path not in given)]
    if "module" in order:
        runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
        return
    script = Path(order["argv"][0])
    sys.path[0] = str(script.parent.resolve())
    vars(main).update(__file__=str(script), __cached__=None)
    exec(compile(script.read_bytes(), str(script), "exec"), vars(main))
