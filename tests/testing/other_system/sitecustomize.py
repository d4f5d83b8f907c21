"""Python imports this first: it takes away what only Linux or POSIX has. See `tests/testing/test_other_systems.py`.

The standard library was made for the system that it is on, so what it needs itself is imported before.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread
import io
import logging
import multiprocessing.connection
import multiprocessing.popen_spawn_posix
import multiprocessing.resource_tracker
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
from typing import Any

LOADED = (asyncio, concurrent.futures.thread, logging, multiprocessing, random, subprocess, tempfile)
MODULES = ("fcntl", "resource", "grp", "termios", "tty", "pty")
FUNCTIONS = ("fork", "forkpty", "register_at_fork", "killpg", "setsid", "getpgrp", "sched_getaffinity", "O_CLOEXEC")

for module in MODULES:
    sys.modules[module] = None  # type: ignore[assignment]
for function in FUNCTIONS:
    delattr(os, function)
del signal.pthread_sigmask
multiprocessing.resource_tracker._HAVE_SIGMASK = False  # type: ignore[attr-defined]

open_file, look_at_file = io.open, os.stat


def _refuse(path: object) -> None:
    if isinstance(path, str | pathlib.PurePath) and str(path).startswith("/proc"):
        raise FileNotFoundError(2, "there is no such thing here", str(path))


def _open(file: Any, *args: Any, **options: Any) -> Any:
    _refuse(file)
    return open_file(file, *args, **options)


def _stat(path: Any, **options: Any) -> os.stat_result:
    _refuse(path)
    return look_at_file(path, **options)


io.open, os.stat = _open, _stat
