"""A store of its own for a proof of the HTTP API, of the kind that the command line names."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from outlive_conformance.servers.postgres import PostgresServer

STORES = ("memory", "sqlite", "postgres")


@contextmanager
def new_store(kind: str) -> Iterator[str]:
    """The address of an empty store; it is gone at the end."""
    if kind == "memory":
        yield "memory:"
    elif kind == "postgres":
        with PostgresServer(fsync=False) as server:
            yield server.store_url(server.create_database())
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:{Path(folder) / 'runs.db'}"


def add_store(parser: argparse.ArgumentParser, *, of_processes: bool = True) -> None:
    """Let a command line say `--store`; a store in memory is for one process."""
    parser.add_argument("--store", choices=STORES[1:] if of_processes else STORES, default="sqlite")
