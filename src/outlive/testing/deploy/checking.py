"""`check_deploy`: the open runs of a store against the code as it is now, before it is deployed.

It only reads, also from a store that workers are using: a journal grows while it is read, and every state that was
committed can be replayed. The schema is not migrated.
"""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from outlive._kernel.define.registry import REGISTRY
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.journal.packing import PayloadCodec
from outlive._kernel.model import given
from outlive._kernel.model.remote import remote_step_of
from outlive.engine import Engine
from outlive.testing.deploy.processes import CHUNK, replay_in_processes
from outlive.testing.deploy.replaying import Replayer, engine_in
from outlive.testing.deploy.report import DeployReport, add_findings
from outlive.testing.deploy.source import SERVERS, Source
from outlive.testing.deploy.verdict import Finding, Kind, Tree

T = TypeVar("T")

Progress = Callable[[int, int], None]
"""Called with how many runs were replayed, and how many there are to replay."""


def check_deploy(
    store: str,
    app: str | None = None,
    *,
    workflows: Sequence[Workflow[..., Any]] = (),
    workflow: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    codecs: Sequence[PayloadCodec] = (),
) -> DeployReport:
    """Replay the open runs of a store with this code, without effects; what would become of them.

        report = check_deploy("postgresql://...", workflows=[checkout])
        assert report.is_fine, report

    Args:
        store: the URL of the store, or of a server of it (`outlive serve`), for which OUTLIVE_KEY has the key of an
            admin; it is only read, and workers may go on meanwhile.
        app: where the code is, as `outlive check-deploy` takes it; processes import it and replay the runs side by
            side. Without it, the code of this process counts, and the runs are replayed here.
        workflows: those to take in the place of the ones of the same names that this process has; not with `app`.
        workflow: only runs of the workflow of this name.
        limit: so many runs at most, the oldest ones.
        sample: so many runs of each workflow and version at most, chosen at random: the same ones each time.
        codecs: the payload codecs of the engine that wrote them; not with `app`, which may name that engine.

    Raises:
        SchemaTooOldError: the store is one of an earlier release of Outlive; nothing was changed.
        ConfigurationError: the code cannot be imported.
    """
    check = DeployCheck(store, workflow=workflow, limit=limit, sample=sample)
    if app is not None:
        return _run(check.with_app(engine_in(app, store), app))
    registry = REGISTRY.replacing(each.spec for each in workflows) if workflows else None
    place = "memory:" if store.startswith(SERVERS) else store
    return _run(check.with_code_of(Engine(place, worker=False, _registry=registry, codecs=codecs)))


class DeployCheck:
    """One look at the open runs of a store."""

    def __init__(
        self,
        url: str,
        *,
        workflow: str | None = None,
        limit: int | None = None,
        sample: int | None = None,
        progress: Progress = lambda done, total: None,
    ) -> None:
        self._url = url
        self._workflow = workflow
        self._limit = None if limit is None else given.whole("check_deploy", "limit", limit)
        self._sample = None if sample is None else given.whole("check_deploy", "sample", sample)
        self._progress = progress
        self._report = DeployReport()

    async def with_code_of(self, engine: Engine) -> DeployReport:
        """Replay in this process, with the definitions and settings of an engine that is not entered."""
        async with Replayer(engine, self._url) as replayer:
            begun_at = time.monotonic()
            trees = await self._find_trees(replayer.source)
            for at in range(0, len(trees), CHUNK):
                chunk = trees[at : at + CHUNK]
                self._take(chunk, await replayer.replay(chunk))
        self._report.seconds = time.monotonic() - begun_at
        return self._report

    async def with_app(self, engine: Engine, app: str, *, processes: int | None = None) -> DeployReport:
        """Replay in processes that import `app`, which has that engine."""
        begun_at = time.monotonic()
        async with Replayer(engine, self._url) as replayer:
            trees = await self._find_trees(replayer.source)
        await replay_in_processes(app, self._url, trees, self._take, processes=processes)
        self._report.seconds = time.monotonic() - begun_at
        return self._report

    def _take(self, trees: list[Tree], findings: list[Finding]) -> None:
        self._report.checked += len(trees)
        add_findings(self._report, findings)
        self._progress(self._report.checked, self._total)

    async def _find_trees(self, source: Source) -> list[Tree]:
        """The open runs to look at, oldest first. Runs whose rows cannot be read are reported at once."""
        sample, found = _Sample(self._sample), 0
        async for page in source.pages(self._workflow, most=self._limit):
            found += len(page)
            for tree in page:
                if tree.is_damaged:
                    self._damaged(tree)
                elif not remote_step_of(tree.definition.rpartition("@")[0]):  # A task's code is in another program.
                    sample.add(tree)
        is_all = self._limit is None or found < self._limit
        self._report.open = found if is_all else await source.count(self._workflow)
        self._total = self._report.checked + len(sample.trees)
        return sample.trees

    def _damaged(self, tree: Tree) -> None:
        finding = Finding(run_id=tree.id, kind=Kind.DAMAGED, definition=tree.definition, what=tree.reason)
        self._report.checked += 1
        add_findings(self._report, [finding])


class _Sample:
    """All runs, or some of each definition, each with the same chance."""

    def __init__(self, most: int | None) -> None:
        self._most = most
        self._random = random.Random(0)
        self._seen: dict[str, int] = {}
        self._kept: dict[str, list[Tree]] = {}

    @property
    def trees(self) -> list[Tree]:
        return [tree for trees in self._kept.values() for tree in trees]

    def add(self, tree: Tree) -> None:
        kept = self._kept.setdefault(tree.definition, [])
        seen = self._seen[tree.definition] = self._seen.get(tree.definition, 0) + 1
        if self._most is None or len(kept) < self._most:
            kept.append(tree)
        elif (place := self._random.randrange(seen)) < self._most:
            kept[place] = tree


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, also in a test that has an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    outcome: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="outlive-check-deploy")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return outcome[0]
