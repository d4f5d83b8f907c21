"""The parts that the adapters for agent frameworks share: names of steps, usage, questions to people, streamed text.

An agent is a loop around two kinds of calls: to a model and to tools. The framework's loop runs as workflow code, and
each of these calls is a step. So the journal has every answer of a model and every result of a tool, and nothing else
of the framework: a replay runs the loop again and gives it the same answers. That is why an adapter is short, and why
a release of a framework may change its loop without changing a journal, as long as it makes the same calls in the
same order.

Usage is counted in workflow code, from the answers in the journal. A call that was interrupted by a crash has no answer
there, so it is made again and counted once.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, TypedDict
from weakref import WeakKeyDictionary

import outlive
from outlive._kernel.model.approval import Approval
from outlive._kernel.model.given import Span
from outlive._kernel.replay.ask import current_execution
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE, Scope
from outlive.errors.program import NotInRunError

NAME_CHARACTERS_MAX = 200
"""The limit for the name of a step; the name of an agent or a tool is cut there."""
SCOPE_NAME = "agent"
TITLE_CHARACTERS_MAX = 1_000
"""The limit for the question to people: the arguments of a tool may be a whole document."""
ARGUMENTS_SHOWN_MAX = 20
"""How many arguments of a call the question to people shows; the others are counted."""
ARGUMENTS_CHARACTERS_MAX = 1_000_000
"""Arguments that come as a longer text are not read as JSON."""
COUNTED_CHARACTERS_MAX = 100_000
"""How many characters of one argument are counted."""
CALLS_MAX = 100
"""How many calls of models and tools of one run are under way at once; the others have their turn as these end."""
QUESTIONS_MAX = 100
"""How many questions of one run people are asked at once; a model may want thousands of calls."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_.-]+")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_ENCODER = json.JSONEncoder(default=str)


class CallOptions(TypedDict, total=False):
    """How a call of a model or a tool is made as a step: the options of `outlive.run_step`."""

    retry: outlive.Retry
    timeout: Span
    heartbeat_timeout: Span


def step_name(*parts: str) -> str:
    """The name of a step in journals, made of what a framework calls something: `weather.tool.get_forecast`."""
    name = ".".join(_NOT_IN_NAMES.sub("-", part).strip("-") for part in parts if part)[:NAME_CHARACTERS_MAX]
    return name if name[:1].isalpha() else f"agent-{name}".rstrip("-")


def is_workflow_code() -> bool:
    """Whether the code that asks is that of a workflow: not a step, and not outside of runs."""
    return current_execution() is not None


async def emit_text(stream: str | None, text: str) -> None:
    """Emit a piece of text to a stream of the run; outside of runs there is no reader, and nothing happens."""
    if stream is not None and text:
        with suppress(NotInRunError):
            await outlive.emit(stream, text)


@dataclass(slots=True)
class Usage:
    """The usage of the models of one run, as far as their answers are in the journal."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True)
class _OfRun:
    scope: Scope
    """Calls are known by their name and how many there were before, whatever tasks a framework makes them in: a new
    release of it may make others."""
    usage: Usage = field(default_factory=Usage)
    counted: set[str] = field(default_factory=set)
    """The ids of the answers that are in it, as far as answers have one."""
    asking: set[str] = field(default_factory=set)
    """The names of the approvals that are open."""
    calls: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(CALLS_MAX))
    questions: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(QUESTIONS_MAX))


_RUNS: WeakKeyDictionary[Execution, dict[str, _OfRun]] = WeakKeyDictionary()
"""Rebuilt by every replay, like everything that workflow code holds."""


def _of_this_run() -> _OfRun:
    execution = current_execution()
    assert execution is not None, "only workflow code counts and asks"
    runs = _RUNS.setdefault(execution, {})
    frame = SCOPE.get().frame
    if (own := runs.get(frame.id)) is None:
        own = runs[frame.id] = _OfRun(Scope(frame, SCOPE_NAME))
    return own


@contextmanager
def _agent_scope() -> Iterator[None]:
    token = SCOPE.set(_of_this_run().scope)
    try:
        yield
    finally:
        SCOPE.reset(token)


async def call_step(
    function: Callable[[], Coroutine[Any, Any, Any]],
    *,
    name: str,
    options: CallOptions,
    raises: tuple[type[BaseException], ...] = (),
    shown: Callable[[], Mapping[str, Any]] | None = None,
) -> Any:
    """Carry out a call of a framework as a step of the run; what it returned comes out of the journal.

    `shown` gives the prompt or the arguments, by name, when people look for them. The answer of a model has the
    arguments of the next call, and a failure of that one may repeat them.
    """
    async with _of_this_run().calls:
        with _agent_scope():
            answer = await outlive.run_step(function, name=name, raises=raises, shown=shown, **options)
    execution = current_execution()
    if execution is not None and execution.redaction:
        secrets: set[str] = set()
        execution.redaction.hide(answer, secrets)
        execution.secrets |= secrets
    return answer


def count_usage(*, input_tokens: int, output_tokens: int, requests: int = 1, answer_id: str | None = None) -> None:
    """Add an answer of a model to what this run has used, and publish the sum as `usage`.

    An answer with an id is counted once, however often a framework passes it on.
    """
    own = _of_this_run()
    if answer_id is not None:
        if answer_id in own.counted:
            return
        own.counted.add(answer_id)
    used = own.usage
    used.requests += requests
    used.input_tokens += input_tokens
    used.output_tokens += output_tokens
    with _agent_scope():
        outlive.publish(usage=asdict(used))


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Whom to ask before a dangerous tool is called, and how: the options of `outlive.wait_for_approval`.

    Args:
        assignees: the people who are asked.
        deadline: seconds or a timedelta; after it the answer is no.
        remind_every: seconds or a timedelta between two reminders; needs `notify`.
        notify: a step that takes an `outlive.types.ApprovalNotice` and tells people.
    """

    assignees: Sequence[str] = ()
    deadline: Span | None = None
    remind_every: Span | None = None
    notify: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of people to the call of a tool."""

    approved: bool
    message: str
    """For the model, if they said no."""


async def ask_people(people: People, tool: str, arguments: Any) -> Answer:
    """Ask people whether a tool may be called with these arguments, and wait for the answer, durably.

    The approval has the name of the tool; while one of that name is open, the next is `<tool>-2`. A run has at most
    `QUESTIONS_MAX` of them open, and asks the next one when one of them is closed.
    """
    if not is_workflow_code():
        raise NotInRunError("wait_for_approval", "a workflow")
    async with _of_this_run().questions:
        with _open_name(step_name(tool)) as name, _agent_scope():
            try:
                answer: Approval[Any] = await outlive.wait_for_approval(
                    name,
                    title=question(tool, _for_people(arguments)),
                    assignees=list(people.assignees),
                    deadline=people.deadline,
                    remind_every=people.remind_every,
                    notify=people.notify,
                )
            except outlive.errors.ApprovalExpiredError:
                return Answer(approved=False, message="No person has decided in time, so the call was not made.")
    reason = f": {answer.comment}" if answer.comment else ""
    return Answer(approved=answer.approved, message=f"{answer.by} did not allow this call{reason}")


async def ask_all(people: People, calls: Sequence[tuple[str, Any]]) -> list[Answer]:
    """Ask about several calls at the same time; the answers are in the order of the calls."""
    return list(await asyncio.gather(*(ask_people(people, tool, arguments) for tool, arguments in calls)))


def _for_people(arguments: Any) -> Any:
    """Arguments of a tool without the fields that the engine redacts."""
    execution = current_execution()
    arguments = _read(arguments)
    if execution is None or not execution.redaction:
        return arguments
    return execution.redaction.hide(arguments)


def by_name(arguments: Any) -> Mapping[str, Any]:
    """The arguments of a tool by name, as a framework has them: often as the JSON that a model wrote."""
    arguments = _read(arguments)
    return arguments if isinstance(arguments, dict) else {"arguments": arguments}


def _read(arguments: Any) -> Any:
    if isinstance(arguments, str) and len(arguments) <= ARGUMENTS_CHARACTERS_MAX:
        with suppress(ValueError, RecursionError):
            return json.loads(arguments)
    return arguments


def question(tool: str, arguments: Any) -> str:
    """The title of an approval: the call as people read it.

    What a model writes cannot hide a part of the call: each argument has room of its own, what is left out is counted,
    and names are shown as they are or in quotes.
    """
    call = f"Call {_shown_name(tool)}"
    room = TITLE_CHARACTERS_MAX - len(call) - len("()?")
    if not isinstance(arguments, dict):
        return f"{call}({_shown(arguments, room)})?"
    names = list(arguments)[:ARGUMENTS_SHOWN_MAX]
    more = [f"and {len(arguments) - len(names)} more arguments"] * (len(arguments) > len(names))
    shown = [f"{_shown_name(name)}={_shown(arguments[name], room)}" for name in names] + more
    if sum(map(len, shown)) + 2 * len(shown) > room:
        own = room // len(shown)
        shown = [_with_room(name, arguments[name], own - 2) for name in names] + more
    return f"{call}({', '.join(shown)})?"


def _with_room(name: str, value: Any, room: int) -> str:
    label = _shown_name(name, room // 2)
    return f"{label}={_shown(value, room - len(label) - 1)}"


def _shown_name(name: Any, most: int = 100) -> str:
    """A name that cannot be taken for anything else of the title."""
    text = str(name)
    return text if len(text) <= most and _PLAIN_NAME.fullmatch(text) else _shown(text, most)


def _shown(value: Any, most: int) -> str:
    """The JSON of a value, in ASCII; of a long one the beginning, and how much there is behind it."""
    if isinstance(value, str) and len(value) > most:
        return _cut(json.dumps(value[:most]), most, f" ({len(value)} characters)")
    text, size = "", 0
    try:
        for part in _ENCODER.iterencode(value):
            text, size = text + part[: most + 1 - len(text)], size + len(part)
            if size > COUNTED_CHARACTERS_MAX:
                return _cut(text, most, f" (more than {COUNTED_CHARACTERS_MAX} characters)")
    except RecursionError:
        return _cut(text, most, " (too deep to show)")
    return text if size <= most else _cut(text, most, f" ({size} characters)")


def _cut(text: str, most: int, rest: str) -> str:
    return f"{text[: max(0, most - len(rest) - 3)]}...{rest}"


@contextmanager
def _open_name(tool: str) -> Iterator[str]:
    """A name that no open approval of this run has."""
    asking = _of_this_run().asking
    name, number = tool, 1
    while name in asking:
        number += 1
        name = f"{tool}-{number}"
    asking.add(name)
    try:
        yield name
    finally:
        asking.discard(name)
