"""One call of a step of a flow, as a built-in sees it; and what a built-in is.

A built-in is what `use:` names when it is neither a registered step nor a workflow: `http`, `map`, `sleep`. Its `run`
is workflow code: it runs on the loop of the run, again in every replay, and must do the same every time. What touches
the world goes through `Call.step`, which makes a journaled step of it. One that has no effect of its own, and only
waits, decides or runs others, says so with `is_control = True`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from outlive._kernel.define.plain import call_plainly
from outlive._kernel.define.resources import call
from outlive._kernel.define.run_step import read_function
from outlive._kernel.replay.ask import run_step, this_execution
from outlive._kernel.replay.command import StepKind, StepOptions, StepSpec

if TYPE_CHECKING:
    from outlive._cel import Type
    from outlive._features.flows.document.model import Document
    from outlive._kernel.model import Retry


class OneOf(NamedTuple):
    """Arguments of a built-in of which one is given: `one_of`, if it has such."""

    names: tuple[str, ...]
    is_needed: bool = True
    """Whether none of them is a mistake too."""


class BuiltIn(Protocol):
    """A name that `use:` can say without code of the user, and its code."""

    @property
    def name(self) -> str:
        """The name in `use:`."""

    @property
    def arguments(self) -> type[msgspec.Struct]:
        """The shape of `with` after rendering; a field that it does not have is refused."""

    @property
    def result(self) -> Type:
        """For checks of what other steps do with its result."""

    async def run(self, call: Call, given: Any) -> Any:
        """Do it; `given` is an object of `arguments`. The result is plain JSON data."""


class Prepared(Protocol):
    """The parts of `with` that a built-in renders itself, for each item or turn; it makes them once for a document.
    Such a built-in has `deferred`, the names of these parts, and `prepare(id, parts, path=...)`."""

    @property
    def references(self) -> frozenset[tuple[str, ...]]:
        """The references of these parts to the steps around."""

    @property
    def uses(self) -> frozenset[str]:
        """The steps and workflows that they need."""

    def resolve(self, id: str) -> None:
        """Look up what they call; raises `FlowError`."""


class Call:
    """One call of a step of a flow, in a run."""

    __slots__ = ("_is_plain", "_kind", "flow", "id", "later", "options", "scope", "secrets")

    def __init__(
        self,
        id: str,
        flow: Document | None,
        scope: Mapping[str, Any],
        options: StepOptions,
        *,
        kind: StepKind | None = None,
        later: Any = None,
        secrets: Iterable[str] = (),
        is_plain: bool = False,
    ) -> None:
        self.id = id
        """The id of the step in its flow."""
        self.flow = flow
        """The document of the flow; None where a step is tried without one."""
        self.scope = scope
        """The scope of the expressions of the step: `input`, `steps`, `vars`, ..."""
        self.options = options
        """Retry, timeouts, limits and undo of the step."""
        self.later = later
        """The parts of `with` that the built-in renders itself, as it has prepared them."""
        self.secrets = list(secrets)
        """References to the secrets that its `with` names: a step may resolve these, and no others."""
        self._kind = kind
        self._is_plain = is_plain

    def with_retry(self, retry: Retry) -> Call:
        """A copy of the call with another policy."""
        options, own = replace(self.options, retry=retry), self.secrets
        return Call(
            self.id,
            self.flow,
            self.scope,
            options,
            kind=self._kind,
            later=self.later,
            secrets=own,
            is_plain=self._is_plain,
        )

    async def step(self, fn: Callable[..., Any], *args: Any, name: str | None = None) -> Any:
        """Run a function as a step: journaled, with the retry, the timeouts, the undo and the limits of this step.

        It is called on the event loop of the worker (or on a thread if it is a plain function), with arguments that
        have come from their stored form. The journal has its result, and what it was called with.

        Args:
            fn: a function of a module, whose annotations say what is stored.
            args: its arguments; never a secret, as the journal has them.
            name: what the journal calls it; the id of the step of the flow unless given.
        """
        own_name = name or self.id
        known = read_function(fn, own_name)
        spec = StepSpec(
            name=own_name,
            fn=fn,
            signature=known.signature,
            is_async=known.is_async,
            options=self.options,
            kind=self._kind,
            resources=known.resources,
        )
        if self._is_plain:
            return await _call_plainly(spec, args)
        return await run_step(this_execution(f"flow step {self.id}"), spec, self.options, args, {})


def plain_call(id: str, scope: Mapping[str, Any], secrets: Iterable[str] = ()) -> Call:
    """A call whose steps are called here and now: inside a step that undoes another one, and where a step is tried."""
    return Call(id, None, scope, StepOptions(), secrets=secrets, is_plain=True)


async def _call_plainly(spec: StepSpec, args: tuple[Any, ...]) -> Any:
    if not spec.is_async and spec.resources is None:
        return await asyncio.to_thread(spec.fn, *args)
    return await call(call_plainly, spec, args, {})
