"""How a trial is set up: with the seed, all that is needed to repeat it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
LEASE_SECONDS = 3.0
DECIDE_SECONDS = 25.0
"""How long people may take for a credit: longer than the store is ever away."""
SETTLE_SECONDS = 30.0
CLOSE_SECONDS = 5
MAILS_PER_SECOND = 5
KEEP_SECONDS = 90.0
"""How long runs stay that have ended. The bank has sent its word for the last time long before that."""


@dataclass(frozen=True)
class Ports:
    """Where the processes listen."""

    webs: tuple[int, ...]
    bank: int
    mailer: int


@dataclass(frozen=True)
class Trial:
    """One trial."""

    folder: Path
    store: str
    seed: int
    minutes: float
    ports: Ports
    workers: int = 2
    agents: int = 2
    orders_per_second: float = 1.5
    strike_seconds: float = 6.0
    """Between two faults, on average."""

    @property
    def seconds(self) -> float:
        """How long the world goes on; what was begun is finished after that."""
        return self.minutes * 60

    @property
    def bank_ledger(self) -> Path:
        """What the bank has done."""
        return self.folder / "bank.jsonl"

    @property
    def mailer_ledger(self) -> Path:
        """What the mailer has sent."""
        return self.folder / "mailer.jsonl"

    @property
    def again(self) -> str:
        """The command that repeats the trial."""
        return (
            f"python -m proof.live --minutes {self.minutes:g} --seed {self.seed} --workers {self.workers} "
            f"--agents {self.agents} "
            f"--orders {self.orders_per_second:g} --strike-seconds {self.strike_seconds:g}"
        )

    def variables(self) -> dict[str, str]:
        """The environment of every process of the application."""
        return {
            "OUTLIVE_STORE": self.store,
            "OUTLIVE_WORKER_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
            "INVOICES_WEB": f"http://127.0.0.1:{self.ports.webs[0]}",
            "INVOICES_BANK": f"http://127.0.0.1:{self.ports.bank}",
            "INVOICES_MAILER": f"http://127.0.0.1:{self.ports.mailer}",
            "INVOICES_DECIDE_SECONDS": f"{DECIDE_SECONDS:g}",
            "INVOICES_SETTLE_SECONDS": f"{SETTLE_SECONDS:g}",
            "INVOICES_MAILS_PER_SECOND": str(MAILS_PER_SECOND),
            "INVOICES_CLOSE_SECONDS": str(CLOSE_SECONDS),
            "PYTHONUNBUFFERED": "1",
        }
