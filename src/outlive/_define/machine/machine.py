"""`outlive.Machine`: a workflow that is written as states."""

from __future__ import annotations

import enum
import sys
from collections.abc import Collection, Coroutine, Mapping
from typing import Any, Generic, Literal, TypeVar, Unpack, overload

from outlive._define.machine.checks import check_definition, problems_of
from outlive._define.machine.defining import Definition
from outlive._define.machine.diagram import mermaid
from outlive._define.machine.driver import driver_of
from outlive._define.machine.picture import svg
from outlive._define.machine.wire import MachineResult, MachineSignature, ResultCodec, StateResult
from outlive._define.workflow import Workflow, WorkflowOptions
from outlive._journal.value import codec_for
from outlive._model import given
from outlive._replay.ask import current_execution
from outlive._replay.command import WorkflowSpec
from outlive.errors import ConfigurationError, MachineError

SNAPSHOT_AFTER = 5_000
"""A replay of so many events takes a few hundredths of a second."""

S = TypeVar("S", bound=enum.Enum)
D = TypeVar("D")

UNDO_SECONDS = 3600.0
"""How long a roll-back may take unless a machine says otherwise: several undos that use up all their attempts."""


class _MachineOptions(WorkflowOptions, total=False):
    snapshot_after: int | None
    undo_timeout: given.Span | None


class Machine(Workflow[[D], MachineResult[S, D]], Definition[S, D], Generic[S, D]):
    """A workflow written as states; start it with `engine.start(machine, data, id=...)`.

    Args:
        name: what journals call it.
        states: an enumeration of its states; journals know each by its name.
        data: the type of what it carries from state to state; without it a machine carries nothing.
        start: where it begins.
        exits: where it ends; its result is the exit and the data.
        version: pinned by each run when it starts.
        timeout: seconds that a run may take as a whole, unless `engine.start(timeout=...)` says otherwise.
        undo_timeout: seconds that the roll-back of a run may take as a whole, after which the run is parked and says
            what is left; an hour unless given, None for as long as it takes.
        snapshot_after: how long the journal of a run may grow, in events, before a snapshot takes the place of what it
            has; None keeps all of it.
        signals: types of signals by name.
        approvals: types of the forms of approvals by name.
        raises: exception classes that reach a parent run as themselves.
        resumable: whether a run goes on by itself when its worker was lost; if not it is parked, and `engine.resume`
            lets it go on.
    """

    @overload
    def __init__(
        self: Machine[S, None],
        name: str,
        states: type[S],
        *,
        start: S,
        exits: Collection[S],
        **options: Unpack[_MachineOptions],
    ) -> None: ...
    @overload
    def __init__(
        self,
        name: str,
        states: type[S],
        *,
        data: type[D],
        start: S,
        exits: Collection[S],
        **options: Unpack[_MachineOptions],
    ) -> None: ...
    def __init__(
        self,
        name: str,
        states: type[S],
        *,
        data: type[D] | None = None,
        start: S,
        exits: Collection[S],
        version: int = 1,
        snapshot_after: int | None = SNAPSHOT_AFTER,
        timeout: given.Span | None = None,
        undo_timeout: given.Span | None = UNDO_SECONDS,
        signals: Mapping[str, Any] | None = None,
        approvals: Mapping[str, Any] | None = None,
        raises: tuple[type[BaseException], ...] = (),
        resumable: bool = True,
        strict_arguments: bool = False,
    ) -> None:
        name = given.label("Machine", name, like="order")
        where = f"machine {name}"
        check_definition(name, states, start, exits)
        version = given.whole(where, "version", version)
        seconds = given.some_seconds(where, "timeout", timeout)
        undo_seconds = given.some_seconds(where, "undo_timeout", undo_timeout)
        if snapshot_after is not None:
            snapshot_after = given.whole(where, "snapshot_after", snapshot_after, or_none="to keep all events")
        codec = codec_for(given.kind(where, "data", data))
        Definition.__init__(self, name, states, codec, start=start, exits=exits, snapshot_after=snapshot_after)
        self._plan.check = self.validate
        self._plan.undo_seconds = undo_seconds
        drive = driver_of(self._plan)
        caller = sys._getframe(1)
        drive.__module__ = caller.f_globals.get("__name__", __name__)
        drive.__name__ = drive.__qualname__ = name
        drive.__doc__ = f"The machine {name}."
        drive.defined_at = f"{caller.f_code.co_filename}:{caller.f_lineno}"  # type: ignore[attr-defined]
        result = ResultCodec(states, codec)
        spec = WorkflowSpec(
            name=name,
            version=version,
            fn=drive,
            signature=MachineSignature(name, data, result, is_required=data is not None),
            timeout_seconds=seconds,
            registered=given.exceptions(where, "raises", raises),
            # Also one that takes no snapshots: another worker may have code that does.
            forgets=True,
            resumable=given.flag(where, "resumable", resumable),
            strict_arguments=given.flag(where, "strict_arguments", strict_arguments),
            observers=self._observers,
        )
        Workflow.__init__(self, spec, given.kinds(where, "signals", signals))
        self._register(given.kinds(where, "approvals", approvals))

    def __call__(self, *args: D, **kwargs: Any) -> Coroutine[object, None, MachineResult[S, D]]:
        """In a run: a child run in the same tree. Outside: the machine runs here and now, without a journal."""
        if current_execution() is not None:
            return super().__call__(*args, **kwargs)
        return self._run_plainly(args, kwargs)

    async def _run_plainly(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> MachineResult[S, D]:
        self.validate()
        signature = self.spec.signature
        given, _ = signature.decode(signature.encode(args, kwargs))
        ended: StateResult = await self.spec.fn(*given)
        result: MachineResult[S, D] = signature.result.decode(signature.result.encode(ended, ""), "")
        return result

    # -- As a whole ------------------------------------------------------------------------------------------

    def validate(self) -> None:
        """See whether the states fit together; done by itself before the first run.

        Raises:
            MachineError: some do not; names all that is wrong.
        """
        if not self._is_checked:
            problems = [*problems_of(self._plan), *self._resources.problems()]
            if problems:
                raise MachineError(self.name, problems)
            self._is_checked = True

    async def health(self) -> dict[str, str]:
        """How the resources of this process are: "healthy", "not set up", or "unhealthy: ..."."""
        return await self._resources.health()

    def diagram(self, form: Literal["mermaid", "svg"] = "mermaid") -> str:
        """The machine as a picture: the text of a Mermaid state diagram, or an SVG image.

        Raises:
            ConfigurationError: another form.
        """
        if form not in ("mermaid", "svg"):
            raise ConfigurationError(f'{self.name}.diagram({form!r}): give "mermaid" or "svg"')
        return svg(self._plan) if form == "svg" else mermaid(self._plan)

    def __repr__(self) -> str:
        return f"<machine {self.spec.name}@{self.spec.version}>"

    def _check_startable(self) -> None:
        self.validate()
