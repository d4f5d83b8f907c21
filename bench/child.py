"""The measured process: one order in argv, one JSON line out.

The module of the system under test is imported here and not before, so a process that measures one of them
never pays for the other. It is imported under its own name, not as `__main__`, so that workflows are found
again under the same name by the process that recovers them.
"""

from __future__ import annotations

import argparse
import importlib
import os

from bench.meter import Order, report


def main() -> None:
    """Carry out the order in argv and answer it."""
    parser = argparse.ArgumentParser(prog="python -m bench.child")
    parser.add_argument("system", choices=("outlive", "dbos", "raw"))
    parser.add_argument("workload")
    parser.add_argument("phase", choices=("run", "prepare", "recover"))
    parser.add_argument("n", type=int)
    parser.add_argument("database")
    given = parser.parse_args()
    order = Order(workload=given.workload, phase=given.phase, n=given.n, database=given.database)
    side = importlib.import_module(f"bench.{given.system}_side")
    report(side.measure(order))
    # The answer is out and the database is thrown away: nobody waits for a system's threads to wind down.
    os._exit(0)


if __name__ == "__main__":
    main()
