"""The processes of the application: started, killed, frozen, replaced, and started again when they have ended.

A supervisor would do the same: a process that ends by itself is started again, and noted. One that was asked to
stop has to end with 0.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from outlive.testing.child_process import ChildProcess
from proof.live.trial import Trial

STOP_SECONDS_MAX = 20.0
"""How long a process may take to stop: the grace of a worker is 5 s here, and a store that is away adds 5 s."""
REST_SECONDS = 1.0
"""Before a process is started again that has ended by itself."""
ASKED_CODES = (0, -15, 143)
"""How a process ends that was asked to: the simple servers outside do not listen to SIGTERM."""
WORKING = ("--grace-seconds", "5", "--metrics-port", "0")
"""How workers are started. On a free port of its own each of them says that it is alive."""
WEB_HAS_NO_STORE = 3
"""uvicorn ends with it if its lifespan fails: then the store was away, which the log says."""


@dataclass
class Member:
    """One place of the fleet, and the process that has it."""

    role: str
    release: int
    process: ChildProcess
    since: float
    frozen_until: float | None = None
    asked_at: float | None = None
    """When it was asked to stop; its successor starts when it has."""
    ended_at: float | None = None
    is_doomed: bool = False
    """Whether it is being killed, which takes a moment."""

    @property
    def kind(self) -> str:
        """`web`, `worker`, `agents`, `bank` or `mailer`."""
        return self.role.partition("-")[0]


class Fleet:
    """All of them."""

    def __init__(self, trial: Trial, releases: dict[int, Path]) -> None:
        self._trial, self._releases = trial, releases
        self.members: dict[str, Member] = {}
        self._leaving: list[tuple[str, ChildProcess, float]] = []
        self._gone: list[ChildProcess] = []
        """Those that others have replaced; at the end each is waited for, and its pipes are closed."""
        self.lost: list[str] = []
        """Processes that ended and should not have, with their last words."""
        self.began_without_store: int = 0
        self.stop_seconds: list[float] = []

    @property
    def roles(self) -> list[str]:
        """The places."""
        webs = [f"web-{number}" for number in range(1, len(self._trial.ports.webs) + 1)]
        workers = [f"worker-{number}" for number in range(1, self._trial.workers + 1)]
        agents = [f"agents-{number}" for number in range(1, self._trial.agents + 1)]
        return ["bank", "mailer", *webs, *workers, *agents]

    def start(self, role: str, release: int) -> None:
        """Give a place to a new process."""
        module, *args = self._command(role)
        variables = self._trial.variables() | {"PYTHONPATH": str(self._releases[release])}
        if role in self.members:
            self._gone.append(self.members[role].process)
        process = ChildProcess(module, *args, log=self._trial.folder / f"{role}.log", env=variables)
        self.members[role] = Member(role, release, process, time.time())

    def _command(self, role: str) -> list[str]:
        trial = self._trial
        kind, _, number = role.partition("-")
        match kind:
            case "bank":
                hook = f"http://127.0.0.1:{trial.ports.webs[0]}/hooks/bank"
                return ["invoices.outside.bank", str(trial.ports.bank), str(trial.bank_ledger), hook]
            case "mailer":
                return ["invoices.outside.mailer", str(trial.ports.mailer), str(trial.mailer_ledger)]
            case "web":
                port = str(trial.ports.webs[int(number) - 1])
                quiet = ["--log-level", "warning", "--timeout-graceful-shutdown", "2"]
                return ["uvicorn", "invoices.web:app", "--port", port, *quiet]
            case "worker":
                return ["outlive.cli", "worker", "invoices.workflows", *WORKING]
            case _:
                return ["outlive.cli", "worker", "invoices.agent", *WORKING]

    # -- What is done to them --------------------------------------------------------------------------------

    def kill(self, role: str) -> None:
        """SIGKILL; a new process has the place at once."""
        member = self.members[role]
        member.is_doomed = True
        member.process.kill()
        self.start(role, member.release)

    def freeze(self, role: str, seconds: float) -> None:
        """SIGSTOP for so long."""
        member = self.members[role]
        member.process.freeze()
        member.frozen_until = time.time() + seconds

    def replace(self, role: str, release: int) -> None:
        """A rolling deploy: a worker has its successor beside it, a server listens until its successor can."""
        member = self.members[role]
        self._thaw(member)
        member.process.terminate()
        if member.kind in ("worker", "agents"):
            self._leaving.append((role, member.process, time.time()))
            self.start(role, release)
        else:
            member.asked_at, member.release = time.time(), release

    # -- What a supervisor does ------------------------------------------------------------------------------

    def look(self) -> None:
        """Thaw, start again, and note who has ended how."""
        now = time.time()
        for role, member in list(self.members.items()):
            if member.is_doomed:
                continue
            if member.frozen_until is not None and now >= member.frozen_until:
                self._thaw(member)
            code = member.process.exit_code
            if code is None:
                if member.asked_at is not None and now - member.asked_at > STOP_SECONDS_MAX:
                    self._note(role, member.process, "was asked to stop and did not")
                    self.kill(role)
            elif member.asked_at is not None:
                self._saw_stop(role, member.process, member.asked_at)
                self.start(role, member.release)
            elif member.ended_at is None:
                member.ended_at = now
                if member.kind == "web" and code == WEB_HAS_NO_STORE:
                    self.began_without_store += 1
                else:
                    self._note(role, member.process, f"ended by itself with code {code}")
            elif now - member.ended_at > REST_SECONDS:
                self.start(role, member.release)
        for entry in list(self._leaving):
            role, process, asked_at = entry
            if process.exit_code is not None:
                self._leaving.remove(entry)
                self._saw_stop(role, process, asked_at)
            elif now - asked_at > STOP_SECONDS_MAX:
                self._leaving.remove(entry)
                self._note(role, process, "was asked to stop and did not")
                process.kill()

    def thaw_all(self) -> None:
        """No process is left frozen."""
        for member in self.members.values():
            self._thaw(member)

    def is_up(self, role: str, *, for_seconds: float) -> bool:
        """Whether its process has been running, and was not frozen, for so long."""
        member = self.members[role]
        is_left_alone = member.frozen_until is None and member.asked_at is None and member.ended_at is None
        is_left_alone = is_left_alone and not member.is_doomed
        return is_left_alone and time.time() - member.since > for_seconds

    def stop(self) -> None:
        """Ask all to stop, and see that they do; the services outside last."""
        for role in reversed(self.roles):
            member = self.members.get(role)
            if member is None or member.process.exit_code is not None:
                continue
            self._thaw(member)
            asked_at = time.time()
            member.process.terminate()
            if member.process.wait(STOP_SECONDS_MAX):
                self._saw_stop(role, member.process, asked_at)
            else:
                self._note(role, member.process, "was asked to stop and did not")
        self.end()

    def end(self) -> None:
        """Nothing is left, also after an error."""
        for process in [*(it.process for it in self.members.values()), *self._gone]:
            process.kill()

    def _thaw(self, member: Member) -> None:
        if member.frozen_until is not None:
            member.process.thaw()
            member.frozen_until = None
            member.since = time.time()

    def _saw_stop(self, role: str, process: ChildProcess, asked_at: float) -> None:
        self.stop_seconds.append(time.time() - asked_at)
        if process.exit_code not in ASKED_CODES:
            self._note(role, process, f"was asked to stop and ended with code {process.exit_code}")

    def _note(self, role: str, process: ChildProcess, what: str) -> None:
        self.lost.append(f"{role} (process {process.pid}) {what}:\n{process.last_words(12)}")
