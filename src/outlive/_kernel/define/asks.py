"""Asks: how a workflow answers what it is asked, each ask exactly once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from outlive._kernel.journal.event import AskReceived
from outlive._kernel.journal.value import ValueCodec, codec_for, codec_for_message, codec_of_value
from outlive._kernel.model import given
from outlive._kernel.replay.ask import this_execution
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE, Frame
from outlive._kernel.replay.serving import fail, is_open, next_ask, reply, serve
from outlive.errors import ArgumentTypeError
from outlive.errors.run import AskAnsweredError

T = TypeVar("T")

WHERE = "outlive.asks"


class Ask(Generic[T]):
    """A question to a run, open until it is answered: with `reply` or with `fail`, once."""

    def __init__(self, body: T, event: AskReceived, frame: Frame, codec: ValueCodec | None) -> None:
        self.body = body
        """The body of the question."""
        self.name = event.name
        self.key = event.key
        """The key that its sender gave it; a question with the same key is the same ask."""
        self._event, self._frame, self._codec = event, frame, codec

    @property
    def is_answered(self) -> bool:
        """Whether it has its answer."""
        return not is_open(self._frame, self._event)

    def reply(self, value: Any = None) -> None:
        """Answer with a value. It is durable with the next event of the run, and the sender gets it then.

        Raises:
            AskAnsweredError: it has an answer. UnserialisableError: the value has no exact stored form.
        """
        execution = self._check_open("reply")
        codec = self._codec or codec_of_value(value)
        reply(execution, self._frame, self._event, codec.encode(value, f"answer to ask {self.name!r}"))

    def fail(self, error: BaseException) -> None:
        """Answer with an error: the sender gets `AskFailedError`, with this as its cause.

        Raises:
            AskAnsweredError: it has an answer.
        """
        execution = self._check_open("fail")
        if not isinstance(error, BaseException):
            raise ArgumentTypeError("Ask.fail", "error", error, 'give an exception, for example ValueError("too many")')
        fail(execution, self._frame, self._event, error)

    def _check_open(self, verb: str) -> Execution:
        execution = this_execution(f"Ask.{verb}")
        execution.refuse_if_dropped()
        if self.is_answered:
            raise AskAnsweredError(self.name, self.key)
        return execution

    def __repr__(self) -> str:
        return f"<ask {self.name} {self.key}>"


class Asks(Generic[T]):
    """The asks of one name, oldest first: for `async for`, or `await anext(...)` for the next one."""

    def __init__(self, name: str, body: ValueCodec, validate: Callable[[T], object] | None, reply: Any) -> None:
        self._execution = this_execution("asks")
        self._execution.refuse_if_dropped()
        self._name = name
        self._reply = reply
        self._queue = serve(name, body, validate)

    def __aiter__(self) -> Asks[T]:
        return self

    async def __anext__(self) -> Ask[T]:
        body, event = await next_ask(self._execution, self._name, self._queue)
        return Ask(body, event, SCOPE.get().frame, self._reply)


@overload
def asks(name: str, *, validate: Callable[[Any], object] | None = None, reply: Any = Any) -> Asks[Any]: ...
@overload
def asks(name: str, kind: type[T], *, validate: Callable[[T], object] | None = None, reply: Any = Any) -> Asks[T]: ...
def asks(name: str, kind: Any = Any, *, validate: Callable[[Any], object] | None = None, reply: Any = Any) -> Any:
    """Serve asks of this name, each with a body of type `kind`: what `engine.ask` sends, and waits for the answer to.

    An ask that came early is taken first. One that is not answered stays open: until the run ends, which refuses it, or
    through `continue_as_new`, whose next generation is given it again.

    Args:
        validate: called with the body before the ask becomes a part of the run; what it raises is the answer, and the
            run never sees the ask. It must be quick, and may look at the state of the workflow but change nothing.
        reply: the type of the answers, so that one of another type is refused here.
    """
    label = given.label(WHERE, name, like="add")
    body = codec_for_message(given.kind(WHERE, "kind", kind))
    if validate is not None:
        given.function(WHERE, "validate", validate, like="check_item")
        if inspect.iscoroutinefunction(validate):
            wanted = "give a plain function, which is called before the ask is an event and cannot wait for anything"
            raise ArgumentTypeError(WHERE, "validate", validate, wanted)
    return Asks(label, body, validate, None if reply is Any else codec_for(given.kind(WHERE, "reply", reply)))
