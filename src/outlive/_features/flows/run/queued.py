"""A step of a flow that waits for its turn in a queue: a run of its own, of the same document, that is this one step.

The run is pinned to the document as its flow is, so a worker takes it that has the document and what it uses. It is
given the arguments as they were rendered, calls the step with its retry, timeouts and limits, and its result is that of
the step. The condition, the default and the undo are those of the flow, which waits for its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from outlive._features.flows.outside.secrets import OPEN, grants_in
from outlive._features.flows.run.target import References, Scope, Target, UndoTarget, detached_result
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.replay.ask import start_detached
from outlive._kernel.replay.command import StepSpec
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE
from outlive.errors import RunFailedError
from outlive.errors.step import FlowStepError

STEP = "step"
"""The argument of a flow that no caller can give."""
OVERRIDES = f"{OPEN}overrides"
"""Where the scope of a run has the arguments that change its steps; no expression can name it."""
_HAS_TURN = f"{OPEN}turn"
"""In the scope of a run that is one step: it has waited for its turn already."""


class QueuedTarget:
    """A step, or a built-in with an effect, in a queue of its own."""

    has_own_scope = False

    def __init__(
        self,
        name: str,
        path: tuple[str, ...],
        target: Target,
        queue: str,
        *,
        undo: UndoTarget | StepSpec | None,
        names: References,
    ) -> None:
        """`path`: the step in its document, behind the steps whose bodies it is in."""
        self._name, self._path, self._target, self._queue = name, path, target, queue
        self._undo, self._names = undo, names

    async def run(self, execution: Execution, scope: Scope, given: Any) -> Any:
        """See `Target`."""
        if _HAS_TURN in scope:
            return await self._target.run(execution, scope, given)
        if self._names:
            grants_in(self._names, scope)  # Here, where the data is: it must not name a secret.
        arguments: dict[str, Any] = {STEP: {"path": self._path, "given": given}}
        arguments |= scope.get(OVERRIDES, {})
        own = SCOPE.get().frame.spec
        spec = replace(own, queue=self._queue, timeout_seconds=None, signature=_Encoded(own.signature))
        run_id = await start_detached(execution, spec, (), arguments, name=self._name)
        undo = self._undo.spec(scope) if isinstance(self._undo, UndoTarget) else self._undo
        try:
            return await detached_result(execution, spec, run_id, undo=undo, name=self._name)
        except RunFailedError as error:
            # The flow has to see what its step raised, and not that this was in a run of its own.
            raise error.__cause__ or error from None


class _Encoded(Signature):
    """The signature of a flow for arguments that no caller of a flow can give."""

    def __init__(self, own: Signature) -> None:
        self.__dict__.update(own.__dict__)

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """See `Signature`."""
        return msgspec.json.encode({"a": [None], "k": kwargs})


async def run_one(execution: Execution, target: Target, scope: Scope, step: Mapping[str, Any]) -> Any:
    """The run that is one step of a flow.

    Raises:
        FlowStepError: a flow did not start it.
    """
    frame = SCOPE.get().frame
    if frame.number or frame.parent_id is None:
        # Its arguments are not those of the document, and may say where a secret goes.
        raise FlowStepError(
            step["path"][-1], "a step alone is run by its flow only; use `outlive flows step` to try one"
        )
    return await target.run(execution, {**scope, _HAS_TURN: True}, step["given"])
