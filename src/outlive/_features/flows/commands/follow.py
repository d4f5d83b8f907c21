"""Follows a run of a flow: draws its steps again and again on a terminal, and writes lines to a pipe."""

from __future__ import annotations

import asyncio
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from outlive._features.flows.graph import StepState, nodes_of
from outlive._features.flows.library.progress import Progress
from outlive._features.flows.picture import lines, said
from outlive._features.flows.run.plan import Plan
from outlive.cli.advice import as_typed

if TYPE_CHECKING:
    from outlive._features.flows.document.model import Document
    from outlive._features.flows.graph import StepView
    from outlive._kernel.client.handle import RunHandle
    from outlive._kernel.values.run import Run
    from outlive.engine import Engine

LOOK_SECONDS_MIN, LOOK_SECONDS_MAX = 0.05, 1.0
QUIET_SECONDS = 3.0
"""After how long without a change the command says what the run waits for."""
LINES_MAX = 60
"""A flow with more steps is written as lines also on a terminal."""


class Follower:
    """Shows one run until it has ended or is parked."""

    def __init__(self, engine: Engine, handle: RunHandle[Any], document: Document, *, says: bool) -> None:
        self._engine, self._handle = engine, handle
        self._nodes = nodes_of(Plan(document))
        self._says = says
        self._is_drawn = says and sys.stderr.isatty() and len(self._nodes) <= LINES_MAX
        self._height = 0
        """How many lines the last drawing has."""
        self._views: dict[str, StepView] = {}
        self._said_why = ""

    async def follow(self) -> None:
        """Return when the run has ended, or stands still until a person comes."""
        if self._says:
            click.echo(f"run {self._handle.id}", err=True)
        pause, quiet = LOOK_SECONDS_MIN, 0.0
        seen: datetime | None = None
        while True:
            run = await self._handle.info()
            if run.updated_at != seen:
                seen, pause = run.updated_at, LOOK_SECONDS_MIN
            if await self._show(run):
                pause, quiet = LOOK_SECONDS_MIN, 0.0
            if run.has_ended or run.status in ("parked", "damaged"):
                return
            if quiet >= QUIET_SECONDS:
                await self._say_why()
            await asyncio.sleep(pause)
            quiet, pause = quiet + pause, min(pause * 1.5, LOOK_SECONDS_MAX)

    async def _show(self, run: Run) -> bool:
        """Look at the journal; whether something has changed."""
        progress = Progress(self._nodes, run.id)
        progress.read(await self._engine.history(run.id))
        before, self._views = self._views, progress.views(run)
        if before == self._views:
            return False
        if self._is_drawn:
            self._draw()
        elif self._says:
            for id, view in self._views.items():
                old = before.get(id)
                if view != old and view.state is not StepState.PENDING:
                    click.echo(f"{id}: {said(view)}", err=True)
        return True

    def _draw(self) -> None:
        drawn = lines(self._nodes, self._views)
        up = f"\x1b[{self._height}A" if self._height else ""
        click.echo(up + "\n".join(f"\x1b[2K{line}" for line in drawn), err=True)
        self._height = len(drawn)

    async def _say_why(self) -> None:
        """Print the wait of the run, if it is new."""
        if not self._says:
            return
        why = as_typed(await self._handle.why())
        if why != self._said_why:
            self._said_why = why
            click.echo(f"it goes on when it can: {why}", err=True)
            self._height = 0

    def failed_at(self) -> str:
        """The step that the run failed at, if it was shown with its error; empty if it is not known."""
        failed = [id for id, view in self._views.items() if view.state is StepState.FAILED and view.note]
        return failed[0] if self._says and len(failed) == 1 else ""

    def plain(self) -> dict[str, Any]:
        """The steps for programs."""
        return {id: {"state": view.state.value, "note": view.note} for id, view in self._views.items()}
