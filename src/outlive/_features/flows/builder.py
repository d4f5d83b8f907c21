"""`outlive.flow.Builder`: the same document from code, with the same checks.

A `Reference` stands for data that exists only in a run. It is written into the document as an expression, wherever it
is put: as a value, in a list, or in an f-string.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import msgspec
from msgspec import UNSET

from outlive._features.flows.document.checking import check, refuse
from outlive._features.flows.document.known_names import known_here
from outlive._features.flows.document.model import Document, canonical
from outlive._features.flows.document.positions import Positions
from outlive._features.flows.document.reading import Reading
from outlive._features.flows.document.validating import document_of
from outlive._features.flows.document.writing import as_yaml
from outlive._features.flows.flow import FlowWorkflow, register_flow
from outlive._kernel.define.step import Step
from outlive._kernel.define.workflow import Workflow
from outlive.errors import InvalidArgumentError


class Reference:
    """Data of a run: `reserve.id` is a field of the result of a step, `reserve["items"][0]` an item of a list in it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Reference:
        if name.startswith("_"):
            raise AttributeError(name)
        return Reference(f"{self._text}.{name}")

    def __getitem__(self, key: str | int) -> Reference:
        return Reference(f"{self._text}[{key}]" if isinstance(key, int) else f"{self._text}[{_quoted(key)}]")

    def __str__(self) -> str:
        return f"${{{{ {self._text} }}}}"

    def __repr__(self) -> str:
        return f"<{self._text}>"

    def __bool__(self) -> bool:
        message = "it has no value before the flow runs; write a condition as text"
        raise InvalidArgumentError(
            "outlive.flow.Builder", "if_", self, f"{message}, for example '{self._text} != null'"
        )


class Builder:
    """Makes a flow from code.

        make = outlive.flow.Builder("orders", input={"order": "object"})
        reserve = make.step("reserve", "shop.reserve", with_={"order": make.input.order})
        orders = make.build(output={"hold": reserve.id})

    `build` gives the flow, which this process can run, and `yaml` its document.
    """

    def __init__(
        self,
        name: str,
        *,
        description: str = "",
        input: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        """`fields` are the other fields of a document, such as `timeout`, `concurrency` and `on_failure`."""
        self._data: dict[str, Any] = {"name": name, "steps": {}}
        if description:
            self._data["description"] = description
        if input:
            self._data["input"] = plain(input)
        self._data |= {key: plain(value) for key, value in fields.items()}
        self.input = Reference("input")
        """The input of the run."""
        self.item = Reference("item")
        """In what `map` and `iterate` call: the item."""
        self.index = Reference("index")
        self.result = Reference("result")
        """In `undo`: the result of the step."""
        self.error = Reference("error")
        """In `use_default`: the error."""
        self.event = Reference("event")
        """In triggers."""

    def step(
        self,
        id: str,
        use: str | Step[..., Any] | Workflow[..., Any],
        *,
        with_: Any = UNSET,
        if_: str | bool | Reference | None = None,
        after: Sequence[str | Reference] = (),
        undo: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> Reference:
        """Add a step.

        Args:
            id: its name in the flow.
            use: a step or workflow of this program, its name, or the name of a built-in.
            with_: its arguments.
            if_: an expression; the step runs only if it is true.
            after: steps that come before it though it uses nothing of them.
            undo: what takes it back: `{"use": ..., "with": {...}}`.
            fields: the other fields of a step, such as `must_run`, `retry`, `timeout` and `on_error`.

        Returns:
            its result, for the arguments of other steps and for the output.
        """
        if id in self._data["steps"]:
            raise InvalidArgumentError("Builder.step", "id", id, "a step of this flow has this name; give another one")
        made: dict[str, Any] = {"use": _name(use)}
        if with_ is not UNSET:
            made["with"] = plain(with_)
        if if_ is not None:
            made["if"] = str(if_) if isinstance(if_, Reference) else if_
        if after:
            made["after"] = [_id(each) for each in after]
        if undo is not None:
            made["undo"] = plain({**undo, "use": _name(undo["use"])} if "use" in undo else undo)
        self._data["steps"][id] = made | {key: plain(value) for key, value in fields.items()}
        return Reference(f"steps.{id}")

    def var(self, name: str, **fields: Any) -> Reference:
        """Declare a variable: `build.var("hook", type="string", env="HOOK")`."""
        self._data.setdefault("vars", {})[name] = plain(fields)
        return Reference(f"vars.{name}")

    def trigger(self, **fields: Any) -> None:
        """Add a trigger: `build.trigger(event="order.created")`; its condition is `if_`."""
        self._data.setdefault("triggers", []).append(_without_underscores(plain(fields)))

    def test(self, name: str, **fields: Any) -> None:
        """Add a test: `build.test("free order", input={...}, output=None)`."""
        self._data.setdefault("tests", []).append({"name": name, **plain(fields)})

    def data(self, *, output: Any = UNSET) -> dict[str, Any]:
        """The document as plain data."""
        return self._data if output is UNSET else {**self._data, "output": plain(output)}

    def yaml(self, *, output: Any = UNSET) -> str:
        """The document as YAML."""
        return as_yaml(self.data(output=output))

    def document(self, *, output: Any = UNSET, strict: bool = False) -> Document:
        """The document, checked as one in a file.

        Raises:
            FlowError: it cannot run; says everything that is wrong. A warning is wrong only if `strict`.
        """
        document = document_of(Reading(self.data(output=output), Positions()))
        refuse(check(document, known_here()), strict=strict)
        return canonical(document)

    def build(self, *, output: Any = UNSET) -> FlowWorkflow:
        """The flow; this process can run it from now on, and means it by its name.

        Raises:
            FlowError: it cannot run; says everything that is wrong.
        """
        flow = FlowWorkflow(self.document(output=output))
        register_flow(flow)
        return flow


def plain(value: Any) -> Any:
    """Plain JSON data, with references as expressions."""
    match value:
        case Reference():
            return str(value)
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(key): plain(each) for key, each in value.items()}
        case str() | bool() | int() | float() | None:
            return value
        case list() | tuple():
            return [plain(each) for each in value]
        case Step() | Workflow():
            return value.name
        case _:
            return msgspec.to_builtins(value)


def _name(use: Any) -> str:
    return use.name if isinstance(use, Step | Workflow) else str(use)


def _id(step: str | Reference) -> str:
    return str(step)[len("${{ steps.") : -len(" }}")] if isinstance(step, Reference) else step


def _quoted(key: str) -> str:
    return msgspec.json.encode(key).decode()


def _without_underscores(fields: dict[str, Any]) -> dict[str, Any]:
    return {key.rstrip("_"): value for key, value in fields.items()}
