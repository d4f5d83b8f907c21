"""The faults: which, when and to whom comes from the seed; each kind at least once, if there is time for all.

In the first half of a trial the first of each kind of process is spared, and in the second half the second one: what
is killed all the time cannot be seen to grow. Spared means: frozen, but never killed or replaced.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from concurrent.futures import Executor

from outlive_conformance.servers.postgres import PostgresServer
from proof.live.evidence import Evidence
from proof.live.fleet import Fleet
from proof.live.trial import LEASE_SECONDS, Trial
from proof.live.world import World

KINDS = (
    "kill worker",
    "kill web",
    "kill agents",
    "kill bank",
    "kill mailer",
    "freeze worker",
    "freeze web",
    "freeze agents",
    "freeze bank",
    "freeze mailer",
    "freeze server",
    "crash server",
    "restart server",
    "deploy",
    "roll back",
)
CALM_SECONDS = 12.0
"""At the beginning: everything has to be up once."""
KINDS_OF_PROCESS = ("worker", "web", "agents", "bank", "mailer", "server")
DEPLOYED = ("worker", "web", "agents")
AWAY_SECONDS = (0.0, 4.0)
SILENT_SECONDS = (1.0, LEASE_SECONDS + 2)
FROZEN_SECONDS = (LEASE_SECONDS + 1, LEASE_SECONDS + 4)


class Storm:
    """What is done to the fleet and to the server of its store."""

    def __init__(
        self,
        trial: Trial,
        fleet: Fleet,
        server: PostgresServer,
        world: World,
        evidence: Evidence,
        *,
        thread: Executor,
        tell: Callable[[str], None],
    ) -> None:
        self._trial, self._fleet, self._server, self._world, self._evidence = trial, fleet, server, world, evidence
        self._thread, self._tell = thread, tell
        self._random = random.Random(f"{trial.seed}/storm")
        self._began = time.time()
        self.release = 1
        """Which one was deployed last."""

    async def rage(self) -> None:
        """Strike until the time is over."""
        await asyncio.sleep(min(CALM_SECONDS, self._trial.seconds / 5))
        deck: list[str] = []
        while (left := self._began + self._trial.seconds - time.time()) > 0:
            if not deck:
                deck = list(KINDS)
                self._random.shuffle(deck)
            kind = deck.pop()
            if kind == "roll back" and self.release == 1:
                deck.insert(0, kind)  # There is nothing to roll back to.
                kind = "deploy"
            await self._strike(kind)
            self._evidence.faults[kind] += 1
            pause = self._random.uniform(0.5, 1.5) * self._trial.strike_seconds
            await asyncio.sleep(max(0.0, min(pause, left)))

    async def calm_down(self) -> None:
        """No process is frozen, the server is there, and everything runs the newest release."""
        self._note("deploy")
        self._fleet.thaw_all()
        await self._call(self._revive)
        for role in self._fleet.roles:
            if self._fleet.members[role].release != 2 and not role.startswith(("bank", "mailer")):
                self._fleet.replace(role, 2)

    async def _strike(self, kind: str) -> None:
        verb, _, what = kind.partition(" ")
        self._note(what)
        match verb, what:
            case (("crash" | "restart"), _):
                await self._outage(self._server.kill if verb == "crash" else self._server.stop)
            case "freeze", "server":
                await self._silence()
            case "deploy", _:
                await self._deploy(2)
            case "roll", _:
                await self._deploy(1)
            case "kill", _:
                self._tell(f"kill {(role := self._victim(what))}")
                await self._call(lambda: self._fleet.kill(role))
            case _:
                self._tell(f"freeze {(role := self._victim(what, spares=False))}")
                seconds = self._random.uniform(*FROZEN_SECONDS)
                await self._call(lambda: self._fleet.freeze(role, seconds))
        self._note(what)

    def _note(self, what: str) -> None:
        """From now on a while has to pass before times say something. A deploy is for all of them."""
        for each in [what] if what in KINDS_OF_PROCESS else DEPLOYED:
            self._world.struck_at[each] = time.time()
        if what == "mailer":
            self._evidence.mailer_struck_at.append(time.time())

    async def _outage(self, end: Callable[[], None]) -> None:
        seconds = self._random.uniform(*AWAY_SECONDS)
        self._tell(f"the server is away for {seconds:.1f} s")
        await self._call(end)
        await asyncio.sleep(seconds)
        await self._call(self._revive)

    async def _silence(self) -> None:
        """The server keeps its connections and gives no answer."""
        seconds = self._random.uniform(*SILENT_SECONDS)
        self._tell(f"the server is silent for {seconds:.1f} s")
        await self._call(self._server.pause)
        await asyncio.sleep(seconds)
        await self._call(self._server.resume)

    def _revive(self) -> None:
        if not self._server.is_running:
            self._server.kill()  # It has noted that it ended.
            self._server.start()

    async def _deploy(self, release: int) -> None:
        """One process after the other, the spared ones aside."""
        self._tell(f"release {release} is deployed")
        self.release = release
        for role in self._fleet.roles:
            if role in self._spared() or role in ("bank", "mailer"):
                continue
            self._fleet.replace(role, release)
            await asyncio.sleep(1.0)

    def _victim(self, kind: str, *, spares: bool = True) -> str:
        spared = self._spared() if spares else set()
        roles = [it for it in self._fleet.roles if it.partition("-")[0] == kind and it not in spared]
        running = [it for it in roles if self._fleet.is_up(it, for_seconds=0)]
        return self._random.choice(running or roles or [it for it in self._fleet.roles if it.startswith(kind)])

    def _spared(self) -> set[str]:
        half = 1 if time.time() - self._began < self._trial.seconds / 2 else 2
        trial = self._trial
        places = {"worker": trial.workers, "web": len(trial.ports.webs), "agents": trial.agents}
        return {f"{kind}-{half}" for kind, count in places.items() if count > 1}

    async def _call(self, act: Callable[[], None]) -> None:
        """What waits, on the one thread that has started the server: the server ends with its thread."""
        await asyncio.get_running_loop().run_in_executor(self._thread, act)
