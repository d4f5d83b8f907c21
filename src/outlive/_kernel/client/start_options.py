"""The options of a start, besides the workflow and its arguments: each option is spelled here, and here only.

An engine, a connection, flows and batches take these dictionaries, and `http/wire` has the same names on the wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict

from outlive._kernel.client.placing import QueueChoice, queue_choice
from outlive._kernel.define.workflow import refuse_unknown
from outlive._kernel.model import given
from outlive._kernel.model.burst import Debounce, Throttle, gathering
from outlive._kernel.model.queue import Queue
from outlive.errors import InvalidArgumentError

OnConflict = Literal["attach", "attach_open", "reject", "reject_open", "replace", "cancel_open"]
MessageConflict = Literal["attach", "attach_open"]
"""The answer to a message with a run to start, if the id of that run is taken."""


class PlaceOptions(TypedDict, total=False):
    """Where a new run, or each item of a batch, waits for its turn."""

    queue: Queue | str | None
    key: str | None
    priority: int | None
    slots: int | None


class StartOptions(PlaceOptions, total=False):
    """The options of every start: of a workflow by its code or its name, and of a flow."""

    id: str | None
    on_conflict: OnConflict
    timeout: given.Span | None
    tags: Mapping[str, str] | None
    headers: Mapping[str, str] | None
    delay: given.Span | None
    start_at: datetime | None
    begin_within: given.Span | None


class OwnStartOptions(StartOptions, total=False):
    """The options of the start of a workflow whose code is in this program, on an engine with the store. A connection
    refuses these three."""

    connection: Any
    debounce: Debounce | None
    throttle: Throttle | None


_OPTIONS = frozenset(StartOptions.__annotations__)
_OWN_OPTIONS = frozenset(OwnStartOptions.__annotations__)
_OF_CALL = "nonce"
"""The nonce of a run that a call in a workflow starts: the same whenever the call is made again."""
_CHOICE_OPTIONS = frozenset(QueueChoice.__struct_fields__)


def start_arguments(workflow: object, options: dict[str, Any], *, by_name: bool = False) -> dict[str, Any]:
    """The options of a start as `Starter` takes them: the options of its queue are one choice, and those of a
    burst are one value.

    Raises:
        ArgumentTypeError: there is no such option. InvalidArgumentError: a start by name does not take it.
    """
    known = _OPTIONS if by_name else _OWN_OPTIONS
    if not known.issuperset(options):
        of_call = options.pop(_OF_CALL, None)
        refuse_options(workflow, options, known)
        if of_call is not None:
            options[_OF_CALL] = of_call
    if not _CHOICE_OPTIONS.isdisjoint(options):
        options["choice"] = queue_choice(**{name: options.pop(name) for name in _CHOICE_OPTIONS & options.keys()})
    debounce, throttle = options.pop("debounce", None), options.pop("throttle", None)
    if debounce is not None or throttle is not None:
        options["gather"] = gathering("engine.start", debounce, throttle)
    return options


def refuse_options(workflow: object, options: dict[str, Any], known: frozenset[str]) -> None:
    """Take options out that say nothing, and refuse the others that a start does not take.

    Raises:
        ArgumentTypeError: there is no such option. InvalidArgumentError: only the code of a workflow, and an engine
            with its store, take it.
    """
    refuse_unknown(workflow, {name: value for name, value in options.items() if name not in _OWN_OPTIONS})
    for name in options.keys() - known:
        if (value := options.pop(name)) is not None:
            wanted = "give it with the workflow itself, on an engine: it needs the code of the workflow, and the store"
            raise InvalidArgumentError("engine.start", name, value, wanted)
