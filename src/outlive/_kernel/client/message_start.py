"""The run that a message creates if it is not there: `start=` of a signal and of an ask.

The run and the message are one change of the store. A workflow whose code is here is given as itself with its
arguments; one whose code is elsewhere by its name, and its arguments are checked against what workers have described.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, NamedTuple, get_args

from outlive._kernel.client.access import Access
from outlive._kernel.client.birth import birth
from outlive._kernel.client.definitions import Definitions, checked_input
from outlive._kernel.client.start_options import MessageConflict
from outlive._kernel.client.starting import Starter
from outlive._kernel.journal.event import RunCreated
from outlive._kernel.model import check_run_id, given
from outlive._kernel.model.payload import Blob
from outlive._kernel.store.contract import Change
from outlive.errors import ArgumentTypeError, InvalidArgumentError


class NamedStart(NamedTuple):
    """A workflow by its name, with its arguments by name or in a list."""

    workflow: str
    arguments: object = None
    version: int | None = None
    """The newest unless given."""


def given_by_name(
    where: str, workflow: str, args: tuple[Any, ...], version: int | None, options: dict[str, Any]
) -> NamedStart:
    """The start of a workflow by its name; `arguments`, if it stands among the options, is taken out of them.

    Raises:
        ArgumentTypeError: there is more than one value of arguments.
    """
    arguments = (*args, options.pop("arguments")) if "arguments" in options else args
    if len(arguments) > 1:
        wanted = f'give the arguments of {workflow} as one value: by name, for example {{"id": 7}}, or in a list'
        raise ArgumentTypeError(where, "arguments", arguments, wanted)
    return NamedStart(workflow, arguments[0] if arguments else None, version)


class Birth(NamedTuple):
    """The change that creates a run, and what it is a run of."""

    change: Change
    workflow: str
    version: int
    again: Callable[[], Awaitable[Change]] | None = None
    """After the end of the run that has the id, makes the change that begins another run; None if none is to be
    begun."""


def is_named(start: object) -> bool:
    """Whether a workflow is given by its name."""
    return isinstance(start, tuple) and bool(start) and isinstance(start[0], str)


class MessageStarts:
    """Makes the runs of messages of one client."""

    def __init__(self, access: Access, *, starter: Starter, definitions: Definitions) -> None:
        self._access = access
        self._starter = starter
        self._definitions = definitions

    @asynccontextmanager
    async def birth(
        self,
        where: str,
        run_id: str,
        start: tuple[Any, ...] | None,
        headers: Mapping[str, str] | None,
        on_conflict: MessageConflict = "attach",
    ) -> AsyncIterator[Birth | None]:
        """The change that creates a run for `(workflow, *args)` or `("name", arguments)`; None if none is to be
        started. It is to be written before this ends: a quota counts it until then.

        Raises:
            UnknownWorkflowError: no worker has described a workflow of this name.
            InvalidArgumentError: the arguments do not fit. QuotaExceededError: no more runs may be started.
        """
        given.one_of(where, "on_conflict", on_conflict, get_args(MessageConflict))
        if start is None and on_conflict != "attach":
            wanted = "it is for the run that the message starts, and it starts none: give start=(workflow, ...) too"
            raise InvalidArgumentError(where, "on_conflict", on_conflict, wanted)
        lives_on = on_conflict == "attach_open"
        if not is_named(start):
            found = self._starter.birth_of(where, run_id, start, headers=headers)
            yield None if found is None else self._birth(run_id, *found, lives_on=lives_on)
            return
        assert start is not None
        if len(start) > len(NamedStart._fields):
            wanted = "give a name with the arguments by name or in a list, for example start=('order', {'id': 7})"
            raise ArgumentTypeError(where, "start", start, wanted)
        named = NamedStart(*start)
        version, described = await self._definitions.find(named.workflow, named.version)
        data = await checked_input(named.workflow, described, named.arguments, where=where)
        said = given.headers(where, headers)
        event, blobs = await self._starter.created_described(
            where, named.workflow, version, described, data, headers=said
        )
        async with self._access.admission.start(run_id):
            yield self._birth(check_run_id(run_id), event, blobs, lives_on=lives_on)

    def _birth(self, run_id: str, event: RunCreated, blobs: list[Blob], *, lives_on: bool) -> Birth:
        again = partial(self._starter.next_life, run_id, event, blobs) if lives_on else None
        return Birth(birth(run_id, event, blobs), event.workflow, event.version, again)
