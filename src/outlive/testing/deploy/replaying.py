"""Replays open runs in this process."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType, TracebackType
from typing import Self

from outlive.engine import Engine
from outlive.errors import ConfigurationError
from outlive.testing.deploy.source import SERVERS, source_for
from outlive.testing.deploy.verdict import Finding, Judge, Kind, Tree


def engine_in(app: str, url: str | None) -> Engine:
    """The engine that a command means by APP: the named one, or an engine for what the import defines.

    Raises:
        ConfigurationError: it cannot be imported, or it is not an engine and no store is given.
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
        # The store behind a server is not opened here: such an engine has the code, and no runs.
        return Engine("memory:" if url.startswith(SERVERS) else url, worker=False)
    engine = found() if callable(found) and not isinstance(found, Engine) else found
    if not isinstance(engine, Engine):
        raise ConfigurationError(
            f"{app} is {type(engine).__name__} and neither an Engine nor a function that makes one"
        )
    return engine


class Replayer:
    """Replays with the definitions and the settings of an engine that is not entered; an async context manager."""

    def __init__(self, engine: Engine, url: str) -> None:
        """The runs are those at `url`: the store of the engine, a copy of it, or a server of it."""
        self._engine = engine
        self.source = source_for(engine, url)

    async def __aenter__(self) -> Self:
        await self.source.__aenter__()
        try:
            await self.source.load_flows(self._engine._registry)
        except BaseException as error:
            await self.source.__aexit__(type(error), error, error.__traceback__)
            raise
        self._judge = Judge(self._engine._environment(), self._engine._redaction)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.source.__aexit__(kind, error, trace)

    async def replay(self, trees: Sequence[Tree]) -> list[Finding]:
        """The findings about these runs; none for a run that would go on, or has ended meanwhile."""
        findings, defined = self._judge_definitions(trees)
        found = await self._replay(defined)
        # A journal that was compacted while it was read looks as if rows were missing; one that is damaged stays so.
        again = {finding.run_id for finding in found if finding.kind is Kind.DAMAGED}
        findings += [finding for finding in found if finding.run_id not in again]
        return findings + (await self._replay([tree for tree in defined if tree.id in again]) if again else [])

    def _judge_definitions(self, trees: Sequence[Tree]) -> tuple[list[Finding], list[Tree]]:
        """The findings about runs that no worker with this code would take, and the other runs."""
        judged = [(tree, self._judge.judge_definition(tree)) for tree in trees]
        return [found for _, found in judged if found is not None], [tree for tree, found in judged if found is None]

    async def _replay(self, trees: Sequence[Tree]) -> list[Finding]:
        read = await self.source.read(trees)
        # A run behind a server may have gone on with another version since it was listed.
        found, defined = self._judge_definitions([tree for tree, _ in read.journals])
        ids = {tree.id for tree in defined}
        for tree, rows in read.journals:
            if tree.id in ids:
                found += self._judge.judge(tree, rows, read.blobs)
        return found
