"""`outlive.start(..., queue=...)`: a workflow starts a run with what `engine.start` takes, or by its name.

Which place a run gets in its queue, what becomes of an id that is taken, and which run the starts of a key belong to is
decided by the store when a start comes. So the start is a step of Outlive's own, which uses the engine that runs it (as
in `talking`), and the journal has the id of the run that it led to. If the worker dies between the two, the next worker
starts once more: with the nonce of the same call, by which the store knows the run that was started already. The starts
of a burst have none: the second one belongs to the same burst, unless it has begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from outlive._kernel.define.in_step import CURRENT_STEP
from outlive._kernel.define.talking import OWN_OPTIONS
from outlive._kernel.define.workflow import Bound
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.plain import plain_json
from outlive._kernel.model import check_run_id, given
from outlive._kernel.model.burst import Debounce, Throttle, gathering
from outlive._kernel.model.queue import Queue
from outlive._kernel.replay.ask import run_step
from outlive._kernel.replay.command import StepSpec
from outlive._kernel.replay.execution import Execution
from outlive._kernel.replay.frame import SCOPE
from outlive.errors import ArgumentTypeError, ConfigurationError, InvalidArgumentError, OutliveError

NAME = "outlive.start"
NONCE_MASK = 2**63 - 1


class DetachedOptions(TypedDict, total=False):
    """The options of `outlive.start` for a run of its own, besides `id`, `tags` and `timeout`: those of
    `engine.start`."""

    on_conflict: Literal["attach", "attach_open", "reject", "reject_open", "replace", "cancel_open"]
    queue: Queue | str | None
    key: str | None
    priority: int | None
    delay: given.Span | None
    start_at: datetime | None
    begin_within: given.Span | None
    headers: Mapping[str, str] | None
    debounce: Debounce | None
    throttle: Throttle | None
    version: int | None


OPTIONS = frozenset(DetachedOptions.__annotations__)


def said_of(workflow: object, options: Mapping[str, Any], *, detached: bool) -> dict[str, Any]:
    """The options that were given and say something.

    Raises:
        ArgumentTypeError: there is no such option. ConfigurationError: they are for runs of their own.
    """
    for name in options.keys() - OPTIONS:
        wanted = (
            "start has no such option; give arguments of the workflow by position, or by name with bind: "
            f"outlive.start({getattr(workflow, 'name', 'workflow')}.bind({name}={options[name]!r}))"
        )
        raise ArgumentTypeError(NAME, name, options[name], wanted)
    said = {name: value for name, value in options.items() if value is not None}
    if said.get("on_conflict") == "attach":
        del said["on_conflict"]
    if said and not detached:
        names = ", ".join(f"{name}=" for name in sorted(said))
        raise ConfigurationError(f"{names} is for a run of its own: outlive.start(..., detached=True)")
    return said


async def start_with(
    execution: Execution,
    wanted: Bound[Any] | tuple[str, Any],
    said: dict[str, Any],
    *,
    id: str | None,
    tags: dict[str, str],
    timeout_seconds: float | None,
) -> str:
    """The id of the run that this start led to; `wanted` is a workflow, or a name and arguments."""
    debounce, throttle = said.pop("debounce", None), said.pop("throttle", None)
    gather = None if debounce is throttle is None else gathering(NAME, debounce, throttle)
    if gather is not None and id is not None:
        raise InvalidArgumentError(
            NAME, "id", id, "leave it out: with debounce= or throttle= the key says which run it is"
        )
    if isinstance(wanted, Bound):
        workflow = wanted.workflow.spec.name
        call = _call_of(wanted)
    else:
        workflow, arguments = wanted
        plain = plain_json(NAME, arguments)

        def call() -> tuple[Any, ...]:
            return workflow, plain

    own: dict[str, Any] = {"tags": tags or None, "timeout": timeout_seconds}
    if gather is None:
        unique = SCOPE.get().random().getrandbits(128)
        known_as = own["id"] = check_run_id(id) if id is not None else f"{workflow}-{unique:032x}"
        own["nonce"] = unique & NONCE_MASK
    else:
        known_as = gather.key
        own["debounce" if isinstance(gather, Debounce) else "throttle"] = gather
    headers = given.headers(NAME, said.pop("headers", None))

    async def start(workflow: str, key: str) -> str:
        source = CURRENT_STEP.get()
        assert source.engine is not None
        inherited = {**source.context().headers, **headers}
        run = await source.engine.start(*call(), **own, **said, headers=inherited or None)
        return str(run.id)

    spec = StepSpec(
        name=NAME,
        fn=start,
        signature=Signature(start, NAME),
        is_async=True,
        options=OWN_OPTIONS,
        registered=(OutliveError,),
    )
    run_id: str = await run_step(execution, spec, OWN_OPTIONS, (workflow, known_as), {})
    return run_id


def _call_of(wanted: Bound[Any]) -> Any:
    """Gives the workflow with its arguments. They are encoded as in a journal: a later change of the values by the
    workflow does not reach the other run."""
    signature = wanted.workflow.spec.signature
    arguments = signature.encode(wanted.args, wanted.kwargs)

    def call() -> tuple[Any, ...]:
        args, kwargs = signature.decode(arguments)
        return (Bound(wanted.workflow, tuple(args), kwargs),)

    return call


def named_arguments(workflow: str, args: Sequence[Any]) -> tuple[str, Any]:
    """A workflow by its name and its arguments, which are one value.

    Raises:
        ArgumentTypeError: there is more than one.
    """
    if len(args) > 1:
        wanted = f'give the arguments of {workflow} as one value: by name, for example {{"id": 7}}, or in a list'
        raise ArgumentTypeError(NAME, "arguments", tuple(args), wanted)
    return workflow, args[0] if args else None
