"""`python -m proof.live`: lives with the application in `examples/invoices`, then proves that it did no harm."""

from __future__ import annotations

import argparse
import random
import shutil
import socket
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from outlive_conformance.servers.postgres import PostgresServer
from proof.live.life import DATABASE, conduct
from proof.live.report import report
from proof.live.trial import Ports, Trial


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m proof.live", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the world goes on")
    parser.add_argument("--seed", type=int, help="the orders, the people and the faults; random unless given")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--agents", type=int, default=2, help="workers of the agent")
    parser.add_argument("--webs", type=int, default=2)
    parser.add_argument("--orders", type=float, default=1.5, help="orders in a second")
    parser.add_argument("--strike-seconds", type=float, default=6.0, help="between two faults")
    parser.add_argument("--dir", type=Path, help="keep the files here; otherwise only those of a failed trial are kept")
    parser.add_argument("--quiet", action="store_true", help="print only the report")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a trial; the exit code is 0 only if every check holds."""
    given = parse(arguments)
    folder = Path(tempfile.mkdtemp(prefix="outlive-live-")) if given.dir is None else given.dir.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    *webs, bank, mailer = free_ports(given.webs + 2)
    seed = random.randrange(1_000_000) if given.seed is None else given.seed

    def trial_on(server: PostgresServer) -> Trial:
        return Trial(
            folder=folder,
            store=server.url(DATABASE),
            seed=seed,
            minutes=given.minutes,
            ports=Ports(tuple(webs), bank, mailer),
            workers=given.workers,
            agents=given.agents,
            orders_per_second=given.orders,
            strike_seconds=given.strike_seconds,
        )

    print(f"seed {seed}, {given.minutes:g} minutes, files in {folder}", flush=True)
    trial, evidence = conduct(trial_on, (lambda _: None) if given.quiet else (lambda text: print(text, flush=True)))
    lines, is_right = report(evidence, trial)
    (folder / "evidence.json").write_bytes(evidence.to_json())
    print("\n".join(lines), flush=True)
    if is_right and given.dir is None:
        shutil.rmtree(folder)
    return 0 if is_right else 1


def free_ports(count: int) -> list[int]:
    """Ports of loopback that are free at this moment, all different."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


if __name__ == "__main__":
    sys.exit(main())
