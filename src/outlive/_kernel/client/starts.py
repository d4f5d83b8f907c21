"""Starts with the middleware of their engine around them: only an engine that has such middleware uses this."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from outlive._kernel.client.message_start import is_named
from outlive._kernel.define.middleware import Hook, StartCall, around
from outlive._kernel.define.workflow import Bound, Startable, bound
from outlive._kernel.model import check_run_id, given
from outlive.errors import ConfigurationError

Verb = Callable[..., Coroutine[Any, Any, Any]]


class Starts:
    """The verbs of one client that start runs."""

    def __init__(self, hooks: Sequence[Hook], *, start: Verb, new_id: Callable[[], str]) -> None:
        self._hooks = hooks
        self._start = start
        self._new_id = new_id

    async def start(
        self,
        workflow: Startable[*tuple[Any, ...], Any],
        args: tuple[Any, ...],
        *,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> str:
        """Start a run; its id. See `Engine.start`."""
        wanted = bound(workflow, args)
        call = start_call(wanted, self._new_id() if id is None else check_run_id(id), headers)
        found = await around(
            self._hooks, call, lambda: self._start(wanted, (), id=call.id, headers=call.headers, **options)
        )()
        if found != call.id:
            raise wrong_answer(call, found)
        return call.id

    def through(self, verb: Verb) -> Verb:
        """A verb that may create its run first, with the middleware around it if it is to do that."""

        async def send(
            run_id: str,
            name: str,
            body: Any = None,
            *,
            start: tuple[Any, ...] | None = None,
            headers: Mapping[str, str] | None = None,
            **options: Any,
        ) -> Any:
            if start is None or is_named(start):  # Arguments by name belong to no code here.
                return await verb(run_id, name, body, start=start, headers=headers, **options)
            workflow, *args = given.call("start", "start", start)
            call = start_call(bound(workflow, tuple(args)), check_run_id(run_id), headers)
            return await around(
                self._hooks, call, lambda: verb(run_id, name, body, start=start, headers=call.headers, **options)
            )()

        return send


def start_call(wanted: Bound[Any], run_id: str, headers: Mapping[str, str] | None) -> StartCall:
    """The start of a run, as middleware sees it."""
    spec = wanted.workflow.spec
    said = given.headers("start", headers)
    return StartCall(spec.name, spec.version, run_id, wanted.args, wanted.kwargs, said)


def wrong_answer(call: StartCall, found: object) -> ConfigurationError:
    """The error of a middleware that neither starts the run nor refuses it."""
    return ConfigurationError(
        f"a middleware returned {found!r} from on_start of {call.workflow}: end it with "
        f"`return await call_next()`, or raise an exception to refuse the start"
    )
