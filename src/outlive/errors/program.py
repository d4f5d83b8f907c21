"""The errors of a program: its arguments, definitions and engines, and code that contradicts its journal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType, FunctionType, TracebackType
from typing import Any, NamedTuple, TypeVar

from outlive.errors.advice import Advice
from outlive.errors.base import (
    ConfigurationError,
    MisuseError,
    NotFoundError,
    OutliveError,
    ReplayError,
)


class DefinitionError(OutliveError):
    """A workflow or step cannot be defined like this."""


class DuplicateDefinitionError(DefinitionError):
    """Two functions claim one name."""

    def __init__(self, kind: str, name: str, first: str, second: str) -> None:
        self.kind, self.name, self.first, self.second = kind, name, first, second
        super().__init__(
            f"{kind} {name!r} is defined twice: at {first} and at {second}; give one of them another name: "
            f'@outlive.{kind}(name="...")'
        )


class LocalDefinitionError(DefinitionError):
    """A lambda or a nested function cannot be found again after a restart."""

    def __init__(self, kind: str, qualname: str, where: str) -> None:
        self.kind, self.qualname, self.where = kind, qualname, where
        super().__init__(
            f"{qualname} at {where} cannot be a {kind}: a restarted process finds a {kind} by its name, and a "
            f"lambda or a function inside a function has none; define it at the top level of a module. If a decorator "
            f"made it, let that decorator keep the name of the function with functools.wraps"
        )


class UnstorableTypeError(DefinitionError, TypeError):
    """An annotation whose values could not be distinguished when they are read back."""

    def __init__(self, what: str, type_name: str, reason: str) -> None:
        self.what, self.type_name, self.reason = what, type_name, reason
        super().__init__(
            f"{what} cannot be stored as {type_name}: {reason.rstrip('.')}. If it is a union, make its classes msgspec "
            f"structs with a tag, `class Card(msgspec.Struct, tag=True)`, or put them into a dataclass that has an "
            f"optional field for each"
        )


class ExpressionError(OutliveError):
    """An expression of a flow that cannot be read, or that has no value for the data it was given."""

    def __init__(self, text: str, *, message: str, offset: int | None, suggestion: str, expression: str) -> None:
        self.message, self.offset, self.suggestion, self.expression = message, offset, suggestion, expression
        super().__init__(text)


class WrongArgumentsError(OutliveError, TypeError):
    """A workflow or a step does not take the arguments that it was given."""

    def __init__(self, name: str, signature: str, reason: str, advice: str = "") -> None:
        self.name, self.signature, self.reason = name, signature, reason
        super().__init__(f"{name}{signature} does not take these arguments: {reason}{advice and f'; {advice}'}")

    def at_start(self) -> WrongArgumentsError:
        """This error, with advice for a caller that starts a run."""
        advice = (
            f"give them by position, engine.start({self.name}, ...), or by name, "
            f"engine.start({self.name}.bind(...), id=...)"
        )
        return WrongArgumentsError(self.name, self.signature, self.reason, advice)


class WorkflowNotFoundError(NotFoundError):
    """No workflow of this name and version is defined in this process."""

    def __init__(self, name: str, version: int | None, known: Sequence[str]) -> None:
        self.name, self.version, self.known = name, version, tuple(known)
        wanted = name if version is None else f"{name}@{version}"
        super().__init__(
            f"no workflow {wanted} is defined here; import the module that defines it before the engine starts "
            f"(defined: {', '.join(sorted(known)) or 'none'})"
        )


class UnknownWorkflowError(NotFoundError):
    """No worker has described a workflow of this name and version."""

    def __init__(self, name: str, version: int | None, versions: Sequence[int], near: Sequence[str]) -> None:
        self.name, self.version, self.versions, self.near = name, version, tuple(versions), tuple(near)
        if versions:
            known = ", ".join(map(str, versions))
            super().__init__(f"no worker has workflow {name} in version {version}; give one of its versions: {known}")
        else:
            meant = f"; did you mean {' or '.join(near)}?" if near else "."
            self._advice = (
                () if near else (Advice("workflows.list", effect="shows the workflows that workers have described"),)
            )
            super().__init__(
                f"no worker has described a workflow {name}{meant} A worker describes its workflows a second after "
                f"its start"
            )


SHOWN_CHARACTERS_MAX = 80
E = TypeVar("E", bound=OutliveError)


class InvalidArgumentError(ConfigurationError, DefinitionError):
    """A verb, a decorator or an option was given something that cannot work; nothing was done.

    Carries `where` it was given, the `name` of the argument, the value that was `given`, what is `wanted`, and an
    `example` of that, or None. It is a `ValueError`; one of the wrong type is `ArgumentTypeError`.
    """

    def __init__(self, where: str, name: str, given: object, wanted: str, *, example: object = None) -> None:
        self.where, self.name, self.given, self.wanted, self.example = where, name, given, wanted, example
        super().__init__(self._in_python())

    def _in_python(self) -> str:
        like = "" if self.example is None else f", for example {self.name}={self.example!r}"
        return f"{self.where}: {self.name}={shown(self.given)} cannot work: {self.wanted}{like}"


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """A verb, a decorator or an option was given something of the wrong type; nothing was done."""


def of_item(error: E, index: int, *, of: str = "starts") -> E:
    """The error of one of many starts or signals, which says of which."""
    if isinstance(error, InvalidArgumentError):
        error.name = f"{of}[{index}].{error.name}"
        error.args = (error._in_python(),)
    else:
        error.args = (f"{of}[{index}]: {error.args[0]}",)
    return error


def shown(given: object) -> str:
    """A value as its user wrote it, but not pages of it."""
    try:
        return brief(given, SHOWN_CHARACTERS_MAX)
    except Exception:  # It is the user's code.
        return shown_text(f"<{type(given).__qualname__}>")


def shown_text(text: str) -> str:
    """A text, but not pages of it."""
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[: SHOWN_CHARACTERS_MAX - 3]}..."


def brief(value: object, most: int) -> str:
    """The beginning of the `repr` of a value. The rest of a long list, dict or text is not looked at."""
    text = ""
    for part in _parts(value, most):
        text += part
        if len(text) > most:
            return f"{text[: most - 3]}..."
    return text


def _parts(value: Any, most: int) -> Iterator[str]:
    kind = type(value)
    if kind is FunctionType:
        yield f"function {value.__qualname__}"
    elif kind is str or kind is bytes:
        yield repr(value[: most + 1])
    elif kind is list:
        yield "["
        for count, item in enumerate(value):
            yield ", " if count else ""
            yield from _parts(item, most)
        yield "]"
    elif kind is dict:
        yield "{"
        for count, (name, item) in enumerate(value.items()):
            yield ", " if count else ""
            yield from _parts(name, most)
            yield ": "
            yield from _parts(item, most)
        yield "}"
    else:
        yield repr(value)


class SettingProblem(NamedTuple):
    """One mistake in the configuration."""

    place: str
    """A file with its line, a variable, or a flag."""
    setting: str
    """The name of the setting; empty if it is about none."""
    reason: str
    """The problem, and how to repair it."""

    def __str__(self) -> str:
        """For people."""
        return f"{self.place}: {self.setting and f'{self.setting}: '}{self.reason}"


class InvalidSettingsError(ConfigurationError):
    """The configuration cannot be used; it has all mistakes as `problems`, each with its place."""

    def __init__(self, problems: Sequence[SettingProblem]) -> None:
        self.problems = tuple(problems)
        count = f"{len(self.problems)} mistakes" if len(self.problems) > 1 else "a mistake"
        super().__init__("\n".join([f"the configuration has {count}:", *(f"  {it}" for it in self.problems)]))


class MachineError(DefinitionError):
    """The states of a machine do not fit together."""

    def __init__(self, machine: str, problems: Sequence[str]) -> None:
        self.machine, self.problems = machine, tuple(problems)
        super().__init__(f"machine {machine} cannot run: {'; '.join(problems)}; correct it and start again")


class UnknownStateError(ReplayError):
    """The journal names a state that the code does not have; the run is parked."""

    def __init__(self, machine: str, state: str, known: Sequence[str]) -> None:
        self.machine, self.state, self.known = machine, state, list(known)
        super().__init__(
            f"the journal says that machine {machine} is in state {state}, which this code does not have (it has "
            f"{', '.join(known)}); deploy code that has {state}, or give the new code another version, then resume the "
            f"run"
        )


class UndoNotFoundError(ReplayError):
    """A snapshot says that something would have to be undone, by a step that the code does not have; the run is
    parked."""

    def __init__(self, machine: str, undo: str, step: str) -> None:
        self.machine, self.undo, self.step = machine, undo, step
        super().__init__(
            f"machine {machine} would undo {step} with step {undo}, which this code does not have; deploy code that "
            f"has it, then resume the run"
        )


class StateResultError(OutliveError, TypeError):
    """A handler returned something that says not where to go."""

    def __init__(self, machine: str, state: str, returned: str, wanted: str) -> None:
        self.machine, self.state, self.returned, self.wanted = machine, state, returned, wanted
        super().__init__(f"state {state} of machine {machine} returned {returned}; return {wanted}")


class SplitFailedError(OutliveError):
    """Too few branches of a split succeeded for its join."""

    def __init__(
        self, machine: str, state: str, *, join: str, succeeded: Sequence[str], errors: Mapping[str, Any], is_late: bool
    ) -> None:
        self.machine, self.state, self.join = machine, state, join
        self.succeeded, self.is_late = list(succeeded), is_late
        self.errors = {name: f"{type(error).__qualname__}: {error}" for name, error in errors.items()}
        why = "its time is over" if is_late else "the others cannot make up for it"
        failed = "; ".join(f"{name} failed with {error}" for name, error in self.errors.items()) or "none failed"
        super().__init__(
            f"split {state} of machine {machine} wants {join}, and {len(self.succeeded)} succeeded "
            f"({', '.join(self.succeeded) or 'none'}); {why}: {failed}"
        )


class EngineForkedError(MisuseError):
    """The engine was entered before the process was forked."""

    def __init__(self, entered_in: int, used_in: int) -> None:
        self.entered_in, self.used_in = entered_in, used_in
        super().__init__(
            f"this engine belongs to process {entered_in} and was used by its fork {used_in}; make and enter an engine "
            f"in the child, or start the process another way (spawn)"
        )


class OtherLoopError(MisuseError):
    """An async verb was used on another event loop than that of the engine."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"this engine belongs to the event loop that entered it, and was used {where}; from another thread use "
            f"`engine.sync`, or `asyncio.run_coroutine_threadsafe(engine.start(...), engine.loop)`"
        )


class SyncOnLoopError(MisuseError):
    """`engine.sync` was used on the thread of the engine's own event loop."""

    def __init__(self) -> None:
        super().__init__(
            "engine.sync would wait here for the event loop that it blocks; in async code write "
            "`await engine.start(...)`, or call sync code with `await asyncio.to_thread(...)`"
        )


class MissingExtraError(ConfigurationError, ImportError):
    """A part of Outlive needs a package that is not installed."""

    def __init__(self, what: str, package: str, extra: str) -> None:
        self.what, self.package, self.extra = what, package, extra
        super().__init__(f"{what} needs the package {package}; run: pip install 'outlive[{extra}]'")


class EngineClosedError(OutliveError, RuntimeError):
    """The engine is not running."""

    def __init__(self, what: str, *, made_by: str = "outlive.Engine(...)") -> None:
        self.what = what
        super().__init__(
            f"{what} needs a running engine; use it inside `async with {made_by} as engine:`, "
            f"or without async inside `with {made_by}.sync as engine:`"
        )


class NotDurableError(MisuseError):
    """A workflow asked its loop for something that no journal can replay. `where` is the line of its code."""

    def __init__(self, what: str, trace: TracebackType | None = None) -> None:
        self.what = what
        self.where = _where(_stack(sys._getframe(1)) if trace is None else _frames(trace))
        at = f" at {self.where}" if self.where else ""
        super().__init__(
            f"{what} is not durable and cannot be used in a workflow{at}; do this in a step (@outlive.step) "
            f"and await the step"
        )


def _stack(frame: FrameType | None) -> list[tuple[FrameType, int]]:
    """The calls that led here in this turn of a run's loop, outermost first."""
    found: list[tuple[FrameType, int]] = []
    while frame is not None and (_module(frame), frame.f_code.co_name) != ("outlive._kernel.replay.loop", "drain"):
        found.append((frame, frame.f_lineno))
        frame = frame.f_back
    return found[::-1] if frame is not None else []


def _frames(trace: TracebackType | None) -> list[tuple[FrameType, int]]:
    found: list[tuple[FrameType, int]] = []
    while trace is not None:
        found.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return found


def _where(frames: list[tuple[FrameType, int]]) -> str:
    """The last line of the user's code among these: of the package that the first frame which is not ours lies in.

    Empty if that is the standard library: a task of nothing but its code does not show who made it.
    """
    roots = [_module(frame).partition(".")[0] for frame, _ in frames]
    user = next((root for root in roots if root != "outlive"), "")
    if not user or user in sys.stdlib_module_names:
        return ""
    frame, line = next(each for each, root in zip(reversed(frames), reversed(roots), strict=True) if root == user)
    return f"{frame.f_code.co_filename}:{line} in {frame.f_code.co_name}"


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


class NotInRunError(MisuseError):
    """This name means something only inside a running workflow or step."""

    def __init__(self, name: str, place: str) -> None:
        self.name, self.place = name, place
        decorators = " or ".join(f"@outlive.{kind}" for kind in ("workflow", "step") if kind in place)
        super().__init__(
            f"outlive.{name}() was called outside {place}; call it in a function decorated with {decorators}, in a run "
            f"that an engine runs"
        )


class DivergenceError(ReplayError):
    """The code asks for something that the journal contradicts; the run is parked, never failed."""

    def __init__(self, *, definition: str, seq: int, journal: str, code: str) -> None:
        self.definition, self.seq, self.journal, self.asked = definition, seq, journal, code
        super().__init__(
            f"the code of {definition} no longer matches the journal at event {seq}\n"
            f"  - journal: {journal}\n"
            f"  + code:    {code}\n"
            f"deploy the code that wrote this journal, or give the new code another version, then resume the run"
        )


class StuckError(ReplayError):
    """The workflow waits for something that no event can ever bring."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(
            f"the workflow waits at {where} for something that no journal event can bring (an Event that "
            f"is never set, a future of another loop, ...); wait for a step, a timer or a signal instead"
        )


class RunawayError(ReplayError):
    """The workflow spins without waiting for anything durable."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        super().__init__(
            f"the workflow took {turns:,} turns of its loop without waiting for anything durable "
            f"(turns_per_event_max); put the busy work into a step"
        )


class RunDropped(BaseException):
    """A dropped run's `finally` block asked for something; nothing of it may happen."""
