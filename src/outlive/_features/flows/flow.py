"""`FlowWorkflow`: a workflow whose function interprets a document.

A run is pinned to the document that it started with, by the mechanism that pins runs to code: the version of the
workflow is the hash of the document. Loading a changed document defines another version beside the first one, and the
name means this version from then on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import msgspec

from outlive._cel import ExpressionError
from outlive._features.flows.document.inputs import fixed_here, given_input, given_vars, refuse_fixed, vars_here
from outlive._features.flows.document.model import (
    Document,
    canonical_json,
    from_canonical,
    seconds_of,
    shown_version,
    version_in,
)
from outlive._features.flows.document.references import expression_errors
from outlive._features.flows.outside.addresses import fixed_vars
from outlive._features.flows.outside.secrets import SECRETS, references_of
from outlive._features.flows.run.driver import driver_of
from outlive._features.flows.run.overrides import limits_of_starts, overridden, refuse_code, schema_of_overrides
from outlive._features.flows.run.plain_data import PlainCodec, plain_of, plain_value
from outlive._features.flows.run.plan import Plan
from outlive._features.flows.run.queued import OVERRIDES, STEP
from outlive._features.flows.run.triggers import schedules_in, triggers_in, warn_of_idle
from outlive._garbage_collection import collection_paused
from outlive._kernel.define.registry import REGISTRY
from outlive._kernel.define.workflow import Workflow
from outlive._kernel.journal.arguments import Signature
from outlive._kernel.journal.value import Stored
from outlive._kernel.model.giver import MAY, MAY_ALL, MAY_POLICIES, gives_freely, overrides_shown, say
from outlive._kernel.model.queue import check_queue
from outlive._kernel.replay.command import WorkflowSpec
from outlive.errors import UnreadableError, WrongArgumentsError
from outlive.errors.document import FlowError, FlowInputError, Problem
from outlive.telemetry import log

PLANS_MAX = 64
"""Plans with overrides that a flow remembers."""


class FlowContent:
    """The part of a flow that its runs need: the document and its plan.

    It does not refer to the workflow that is made of it. So the thousands of objects of a plan go with the flow, on the
    thread that had made them. In a circle they would be left to Python's collector, which works on whichever thread
    comes next: it held the event loop for a third of a second after a check of a document of 200 KB.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self._secrets = references_of(document)
        with collection_paused(), expression_errors():
            self.plan = Plan(document)
            self.fixed = fixed_vars(document)
            """The variables that no start may give, unless it is one of the program itself or of an admin."""
        self._plans: OrderedDict[bytes, Plan] = OrderedDict()

    def begin(self, given: Any, values: Any, overrides: Any, step: Any, may: Any) -> tuple[Plan, dict[str, Any]]:
        """The plan of a run with these arguments, and the scope of its expressions.

        Raises:
            FlowError, FlowInputError: they do not fit the document, or their giver may not give them.
        """
        freely = may == MAY_ALL
        if overrides and not freely:
            refuse_code(self.document, overrides)
        plan = self.plan_for(overrides, freely=freely)
        plan.resolve()
        if step is not None:  # Its arguments have been rendered; all that it still resolves are secrets.
            return plan, {"vars": self._secrets, SECRETS: self._secrets}
        # `encode` has checked these too, but a run can be started by a program that does not have the document.
        given_values = {name: value for name, value in (values or {}).items() if value is not None}
        if may is None and self.fixed:
            # A program started it that does not have the document.
            refuse_fixed(self.document, given_values, self.fixed)
            given_values |= fixed_here(self.document, self.fixed)
        known = given_vars(self.document, given_values, {}) if self.document.vars else {}
        scope = {"input": given_input(self.document, given), "vars": known}
        if self._secrets:
            scope |= {"vars": {**known, **self._secrets}, SECRETS: self._secrets}
        if overrides:
            scope[OVERRIDES] = {"overrides": overrides} | ({MAY: may} if may else {})
        return plan, scope

    def plan_for(self, overrides: Mapping[str, Any] | None, *, freely: bool = True) -> Plan:
        """The plan of a run with these changes; unless they are made freely, they are data and no expressions.

        Raises:
            FlowError: they do not fit the document.
        """
        if not overrides:
            return self.plan
        key = msgspec.json.encode([freely, overrides], order="sorted")
        plan = self._plans.get(key)
        if plan is None:
            try:
                apart = () if freely else limits_of_starts(self.document, overrides)
                plan = Plan(overridden(self.document, overrides, freely=freely), apart=apart)
                self._plans[key] = plan
            except ExpressionError as error:
                path = ("overrides",)
                raise FlowError([Problem(code="expression", message=str(error), path=path)]) from None
            if len(self._plans) > PLANS_MAX:
                self._plans.popitem(last=False)
        return plan


class FlowWorkflow(Workflow[..., Any]):
    """A flow; start it with `engine.start(flow, {...}, id=...)`, or call it in a workflow with `await`.

    `outlive.flow.load` and `outlive.flow.parse` make one of a document. Its arguments are its input and, by name with
    `flow.bind(input, vars=..., overrides=...)`, values of its variables and changes of its steps.
    """

    def __init__(self, document: Document, *, file: str = "") -> None:
        text = canonical_json(document)
        self._content = content = FlowContent(from_canonical(text))
        self.document = document = content.document
        version = version_in(text)
        self.hash = shown_version(version)
        """The name of this version of the document, for people: 12 hex digits."""
        self.file = file
        drive = driver_of(content.begin)
        drive.__module__ = "outlive.flow"
        drive.__name__ = drive.__qualname__ = document.name
        drive.__doc__ = document.description or f"The flow {document.name}."
        drive.defined_at = file or f"flow {document.name} {self.hash}"  # type: ignore[attr-defined]
        spec = WorkflowSpec(
            name=document.name,
            version=version or 1,
            fn=drive,
            signature=FlowSignature(content, drive),
            timeout_seconds=None if document.timeout is None else seconds_of(document.timeout),
            resumable=document.resumable,
            queue=check_queue(f"flow {document.name}", document.queue),
            retry=content.plan.retry,
            uses=content.plan.uses,
        )
        super().__init__(spec, {})

    def check(self) -> None:
        """See whether this process has what it uses, and can call that as the document says.

        Raises:
            FlowError: not so; says everything that is wrong.
        """
        self._content.plan.resolve()

    def _check_startable(self) -> None:
        self.check()

    def __repr__(self) -> str:
        return f"<flow {self.spec.name} {self.hash}>"


def register_flow(flow: FlowWorkflow) -> None:
    """Let this process run it, and mean it by its name; its triggers count when a worker starts.

    Raises:
        FlowError: a trigger cannot work.
    """
    triggers = triggers_in(flow.document)
    try:
        schedules = schedules_in(flow.document)
    except FlowInputError as error:
        # A program that only starts or checks flows need not have the environment of the workers.
        log.warning("this process does not declare the schedules of flow %s: %s", flow.name, error)
        schedules = []
    warn_of_idle(flow.document)
    flow._register({}, schedules)
    REGISTRY.set_current(flow.name, flow.version)
    if triggers:
        REGISTRY.add_triggers(flow.spec, triggers)


class FlowSignature(Signature):
    """A flow takes its input, the values of its variables, and changes of its steps: plain data, checked when a run is
    started."""

    takes_input = True

    def __init__(self, flow: FlowContent, drive: Any) -> None:
        super().__init__(drive, flow.document.name, without=(STEP, MAY))
        self._flow = flow
        self.result = PlainCodec()

    @property
    def schemas(self) -> dict[str, dict[str, Any]]:
        """See `Signature`: what any start may give."""
        given = [name for name, each in self._flow.document.vars.items() if not each.secret]
        return {
            "vars": {
                "type": ["object", "null"],
                "properties": {name: {} for name in given if name not in self._flow.fixed},
                "additionalProperties": False,
            },
            "overrides": schema_of_overrides(self._flow.document),
        }

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """See `Signature`.

        Raises:
            FlowInputError: the input or a variable does not fit its schema, or its giver may not give it.
            FlowError: an override does not fit the document.
        """
        self.check(args, kwargs)
        freely = gives_freely()
        flow, what = self._flow, f"the arguments of flow {self._flow.document.name}"
        given = plain_value({"input": args[0] if args else None, **kwargs}, what)
        overrides, own = given.get("overrides"), given.get("vars") or {}
        if not freely:
            refuse_fixed(flow.document, own, flow.fixed)
            refuse_code(flow.document, overrides or {})
        if overrides:
            flow.plan_for(overrides, freely=freely).resolve()
        taken = given_input(flow.document, given["input"])
        values = vars_here(flow.document, own)
        named = {key: value for key, value in (("vars", values), ("overrides", overrides)) if value}
        if overrides or not flow.fixed.isdisjoint(values):
            named[MAY] = MAY_ALL if freely else MAY_POLICIES
        if overrides:
            say(overrides_shown(overrides))
        return msgspec.json.encode({"a": [taken], "k": named} if named else [taken])

    def carried(self, data: bytes, *, freely: bool) -> bytes:
        """See `Signature`. They were checked against another document, and what that one lets a start change is not
        what this one does. Variables that are fixed here are those of the worker.

        Raises:
            FlowInputError: there are overrides that no start may give.
        """
        plain = plain_of(data, f"the arguments of flow {self._flow.document.name}")
        if not isinstance(plain, dict) or (plain["k"].get(MAY) == MAY_ALL and freely):
            return data
        document, named = self._flow.document, {name: value for name, value in plain["k"].items() if name != MAY}
        refuse_code(document, named.get("overrides") or {})
        values = {name: value for name, value in (named.get("vars") or {}).items() if name not in self._flow.fixed}
        return msgspec.json.encode(plain | {"k": named | {"vars": values}})

    def decode(self, data: Stored) -> tuple[list[Any], dict[str, Any]]:
        """See `Signature`: plain data, as everything in a flow."""
        what = f"the arguments of flow {self._flow.document.name}"
        plain = plain_of(data, what)
        args, kwargs = (plain["a"], plain["k"]) if isinstance(plain, dict) else (plain, {})
        try:
            self.check(args, {name: value for name, value in kwargs.items() if name not in (STEP, MAY)})
        except WrongArgumentsError as error:
            raise UnreadableError(what, "an input, vars and overrides", error.reason) from error
        return args, kwargs
