"""Reads open runs from a store and replays them in this process."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType, TracebackType
from typing import Self

from outlive._runtime.services.flow_loader import FlowLoader
from outlive._runtime.tree.claim_data import blob_ids
from outlive._store.contract import Store
from outlive.engine import Engine
from outlive.engine.url import store_for
from outlive.errors import ConfigurationError
from outlive.testing.deploy.verdict import Finding, Judge, Kind, Tree


def engine_in(app: str, url: str | None) -> Engine:
    """The engine that a command means by APP: the one that it names, or one for what the import defines.

    Raises:
        ConfigurationError: it cannot be imported, or it is no engine and no store is given.
    """
    from click import ClickException

    from outlive.cli.app import load

    try:
        _, found = load(app)
    except ClickException as error:
        raise ConfigurationError(error.message) from error
    if isinstance(found, ModuleType):
        if url is None:
            raise ConfigurationError("there is no store; give --store URL or set OUTLIVE_STORE")
        return Engine(url, worker=False)
    engine = found() if callable(found) and not isinstance(found, Engine) else found
    if not isinstance(engine, Engine):
        raise ConfigurationError(
            f"{app} is {type(engine).__name__} and neither an Engine nor a function that makes one"
        )
    return engine


class Replayer:
    """Replays with the definitions and the settings of an engine that is not entered; an async context manager."""

    def __init__(self, engine: Engine, url: str) -> None:
        """The runs are those at `url`, which may be a copy of the store of the engine."""
        self._engine = engine
        self.store: Store = engine._store if url == engine.url else store_for(url, clock=engine._clock.now)

    async def __aenter__(self) -> Self:
        # Migrating it is left to the first engine of the new release.
        await self.store.open(migrate=False)
        try:
            # The flows of the library, as a worker has them; their schedules stay as they are.
            await FlowLoader(self.store, self._engine._registry, redefine=_tell_no_session).look()
        except BaseException:
            await self.store.close()
            raise
        self._judge = Judge(self._engine._environment(), self._engine._redaction)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.store.close()

    async def replay(self, trees: Sequence[Tree]) -> list[Finding]:
        """What would become of these runs; nothing for those that would go on, or have ended meanwhile."""
        findings: list[Finding] = []
        defined: list[Tree] = []
        for tree in trees:
            finding = self._judge.judge_definition(tree)
            if finding is None:
                defined.append(tree)
            else:
                findings.append(finding)
        found = await self._replay(defined)
        # A journal that was compacted while it was read looks as if rows were missing; one that is damaged stays so.
        again = {finding.run_id for finding in found if finding.kind is Kind.DAMAGED}
        findings += [finding for finding in found if finding.run_id not in again]
        return findings + (await self._replay([tree for tree in defined if tree.id in again]) if again else [])

    async def _replay(self, trees: Sequence[Tree]) -> list[Finding]:
        journals = await self.store.read_journals([tree.journal for tree in trees]) if trees else {}
        ids = sorted(blob_ids(journals.values(), ()))
        blobs = await self.store.get_blobs(ids) if ids else {}
        found: list[Finding] = []
        for tree in trees:
            if rows := journals.get(tree.journal):
                found += self._judge.judge(tree, rows, blobs)
        return found


async def _tell_no_session() -> None:
    """There is no session that could claim by it."""
