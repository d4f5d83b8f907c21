"""Exceptions to data and back.

What is written: the class by name, the message, arguments and public attributes that have an exact plain form, notes,
the cause chain and the traceback as text. What is raised again, with the frames of that traceback (`trace`): the class
itself if the step registered it (`raises=`, or `Retry.on`) or if it is a builtin subclass of `Exception`; anything else
becomes `StepFailedError` with all of that on it. A class is never imported because data names it.
"""

from __future__ import annotations

import builtins
import traceback
from collections.abc import Iterable
from typing import Any

import msgspec

from outlive._kernel.journal.tagged import from_plain, to_plain
from outlive._kernel.journal.trace import own_part, trace_of
from outlive._kernel.model import Failure
from outlive.errors import (
    CircuitOpenError,
    OutsideError,
    RateLimitedError,
    ResourceError,
    StepFailedError,
    StepInterruptedError,
    StepSkippedError,
    StepTimeoutError,
    UnserialisableError,
)
from outlive.errors.base import message_of
from outlive.errors.run import NotBegunError
from outlive.errors.step import ProcessDiedError
from outlive.errors.store import StreamFullError, TransactionOverError, TransactionRefusedError

CAUSES_MAX = 10
TRACEBACK_CHARACTERS_MAX = 20_000
TEXT_CHARACTERS_MAX = 10_000
PLAIN_BYTES_MAX = 32 * 1024
"""The limit for the arguments of an exception, and for each of its attributes."""
ATTRIBUTES_MAX = 20
NOTES_MAX = 20

_json = msgspec.json.Encoder().encode


def failure_of(error: BaseException) -> Failure:
    """Everything worth keeping of an exception."""
    return _failure(error, CAUSES_MAX)


def _failure(error: BaseException, causes: int) -> Failure:
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    return Failure(
        type=storable(class_name(type(error))),
        message=_text(error),
        args=_arguments(error),
        attributes=_attributes(error),
        cause=_failure(cause, causes - 1) if cause is not None and causes else None,
        notes=_notes(error),
        # The end of a traceback says what happened; the middle of a deep recursion says nothing.
        traceback=storable(_traceback(error)[-TRACEBACK_CHARACTERS_MAX:]),
    )


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, own_part(error.__traceback__), chain=False))
    except Exception as broken:  # It reads source files and calls code of the user.
        return f"<the traceback cannot be printed: {type(broken).__qualname__}>"


def text_of(failure: Failure) -> str:
    """A failure as Python prints an exception: its causes first, each with its traceback."""
    text = failure.traceback.rstrip() or f"{failure.type}: {failure.message}"
    if failure.cause is None:
        return text
    return f"{text_of(failure.cause)}\n\nThe above exception led to the following exception:\n\n{text}"


def class_name(cls: type) -> str:
    """How the journal names a class."""
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def exception_of(
    failure: Failure, *, registered: Iterable[type[BaseException]] = (), step: str = "", attempts: int = 1
) -> BaseException:
    """The exception of a step again: its own class where that is known, else `StepFailedError`."""
    error = rebuild(failure, registered)
    if error is not None:
        return error
    attributes = {name: from_plain(value) for name, value in failure.attributes.items()}
    failed = StepFailedError(
        failure.message,
        step=step,
        type_name=failure.class_name,
        attributes=attributes,
        traceback_text=failure.traceback,
        attempts=attempts,
    )
    return _dress(failed, failure, registered)


def rebuild(failure: Failure, registered: Iterable[type[BaseException]]) -> BaseException | None:
    """The exception itself, if its class is a builtin or registered; else None."""
    registered = tuple(registered)
    error = _bare(failure, registered)
    return None if error is None else _dress(error, failure, registered)


def is_rebuilt(error: BaseException) -> bool:
    """Whether the exception comes out of a journal."""
    return getattr(error, "_is_rebuilt", False)


def _dress(error: BaseException, failure: Failure, registered: Iterable[type[BaseException]]) -> BaseException:
    if failure.cause is not None:
        error.__cause__ = exception_of(failure.cause, registered=registered)
    for note in failure.notes:
        error.add_note(note)
    return error.with_traceback(trace_of(failure.traceback))


def _bare(failure: Failure, registered: tuple[type[BaseException], ...]) -> BaseException | None:
    cls = _class_of(failure.class_name, registered)
    if cls is None or issubclass(cls, StopIteration):  # No future and no coroutine can raise that one.
        return None
    args = from_plain(failure.args) if failure.args is not None else [failure.message]
    try:
        # Past its own __init__: a class may take other arguments there than it keeps in `args`. That of its builtin
        # base sets what Python keeps elsewhere: errno, the code of an exit, the place of a syntax error.
        error: BaseException = cls.__new__(cls, *args)
        builtin = next(base for base in cls.__mro__ if base.__module__ == "builtins")
        builtin.__init__(error, *args)  # type: ignore[misc]
        for name, value in {"_is_rebuilt": True, **failure.attributes}.items():
            setattr(error, name, from_plain(value))
    except Exception:  # A class that cannot be built this way is reported as StepFailedError.
        return None
    return error


def _class_of(name: str, registered: Iterable[type[BaseException]]) -> type[BaseException] | None:
    for cls in registered:
        if class_name(cls) == name:
            return cls
        for sub in _subclasses(cls):
            if class_name(sub) == name:
                return sub
    builtin = getattr(builtins, name, None)
    # An exception that ends a program, or closes a generator, comes out of a process and not out of data.
    return builtin if isinstance(builtin, type) and issubclass(builtin, Exception) else None


def _subclasses(cls: type[BaseException]) -> Iterable[type[BaseException]]:
    # "Everything" registers nothing in particular: a class must be named, or named through a base of its own.
    if cls.__module__ == "builtins":
        return
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


def _arguments(error: BaseException) -> Any:
    if isinstance(error, OSError) and len(error.args) == 2 and error.filename is not None:
        names = [error.filename] if error.filename2 is None else [error.filename, None, error.filename2]
        complete = _plain_or_none([*error.args, *names])
        if complete is not None:
            return complete
    return _plain_or_none(list(error.args))


def _attributes(error: BaseException) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for name, value in getattr(error, "__dict__", {}).items():
        if len(attributes) < ATTRIBUTES_MAX and isinstance(name, str) and not name.startswith("_"):
            plain = _plain_or_none({name: value})
            if plain is not None:
                attributes[name] = plain[name]
    return attributes


def _notes(error: BaseException) -> tuple[str, ...]:
    notes = getattr(error, "__notes__", ())
    return tuple(_text(note) for note in notes[:NOTES_MAX]) if isinstance(notes, list | tuple) else ()


def _plain_or_none(value: Any) -> Any:
    """Tagged JSON, if the value has an exact form that is not a burden for the journal."""
    try:
        plain = to_plain(value, "an attribute of an exception")
        return plain if len(_json(plain)) <= PLAIN_BYTES_MAX else None
    except Exception:  # Whatever its parts do when they are looked at: the failure itself must be kept.
        return None


def _text(thing: object) -> str:
    try:
        text = message_of(thing) if isinstance(thing, BaseException) else str(thing)
    except Exception as broken:  # A __str__ that raises must not cost us the failure.
        text = f"<str() of {type(thing).__qualname__} raised {type(broken).__qualname__}>"
    return storable(text[:TEXT_CHARACTERS_MAX])


def storable(text: str) -> str:
    """The text without what UTF-8 cannot hold."""
    return text.encode("utf-8", "backslashreplace").decode()


OWN_ERRORS: tuple[type[BaseException], ...] = (
    StepTimeoutError,
    StepInterruptedError,
    StepSkippedError,
    ProcessDiedError,
    TransactionOverError,
    TransactionRefusedError,
    UnserialisableError,
    CircuitOpenError,
    RateLimitedError,
    ResourceError,
    StreamFullError,
    NotBegunError,
    OutsideError,
)
"""Errors of ours that reach a workflow as themselves."""
