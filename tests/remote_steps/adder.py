"""A worker in Python for the trial: adds, and says so in the ledger."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

NUMBER = {"type": "integer"}
FIELDS = {"n": NUMBER, "by": NUMBER}


def main(server: str, queue: str, ledger: str, name: str) -> None:
    """Work until it is killed."""
    worker = import_module("worker").Worker(
        server, queue=queue, name=name, lease_seconds=2
    )  # The copy beside this one.

    def add(given: Any, task: Any) -> int:
        time.sleep(0.1)
        try:
            # The ledger takes each key once, as a bank takes an idempotency key.
            with (Path(ledger) / task.id).open("x") as file:
                file.write(f"py {given['by']}")
        except FileExistsError:
            pass
        time.sleep(0.1)
        return int(given["n"] + given["by"])

    worker.step("add", input={"type": "object", "properties": FIELDS}, output=NUMBER)(add)
    worker.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
