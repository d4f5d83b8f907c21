"""Finds the mistakes of a flow before anything runs, beyond what its types say.

Every expression is read and its types are checked: an unknown step, input or variable, a field that is not there, or
values that do not go together. The order that the references make must not be a circle. What `use:` names must be
known, and what a built-in is given must be what it takes.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter
from itertools import chain, islice
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, inspect

from outlive._cel import (
    ANY,
    MAP,
    STRING,
    CheckedTypes,
    Expression,
    ExpressionError,
    Template,
    Type,
    type_of_schema,
)
from outlive._cel.expression import plain
from outlive._cel.spelling import few_suggestions
from outlive._features.flows.built_in.contract import OneOf
from outlive._features.flows.document import declarations
from outlive._features.flows.document.inputs import input_schema, variable_schema
from outlive._features.flows.document.known_names import Known, Registered, Shape
from outlive._features.flows.document.model import Document, FlowStep, canonical
from outlive._features.flows.document.positions import Positions
from outlive._features.flows.document.problems import PROBLEMS_LOOKED_FOR, did_you_mean
from outlive._features.flows.document.reading import read
from outlive._features.flows.document.references import compile_value
from outlive._features.flows.document.validating import VARIABLE, document_of, either, kind_of, misfits
from outlive._garbage_collection import collection_paused
from outlive._kernel.model.remote import is_remote, queue_and_step
from outlive.errors.document import FlowError, Path, Problem, dotted, placed

Types = Mapping[str, Type]

_ONLY = {
    "item": "in what `map` and `iterate` call",
    "index": "in what `map` and `iterate` call",
    "result": "in `undo`",
    "error": "in `use_default`",
    "event": "in triggers",
}
"""Names that expressions know in some places only."""
CIRCLES_MAX = 10
CIRCLE_SHOWN_MAX = 20
"""How many steps of a circle are named: of a longer one the first steps."""
_KINDS = {"a map": "map", "a list": "list", "text": "string", "true or false": "bool", "a time such as 30s": "string"}


def parse_document(text: str | bytes, file: str = "", *, known: Known, strict: bool = False) -> Document:
    """The document in a text, in its canonical form.

    Raises:
        FlowError: it cannot run; with everything that is wrong with it. A warning is wrong only if `strict`.
    """
    with collection_paused():
        reading = read(text, file)
        document = document_of(reading)
        refuse(check(document, known, reading.positions), file, strict=strict)
        return canonical(document)


def refuse(problems: Iterable[Problem], file: str = "", *, strict: bool = False) -> list[Problem]:
    """The warnings, if there is nothing worse.

    Raises:
        FlowError: there is.
    """
    found = list(problems)
    if any(strict or not each.is_warning for each in found):
        raise FlowError(found, file)
    return found


def check(document: Document, known: Known, positions: Positions | None = None) -> list[Problem]:
    """Everything that is wrong with a document, warnings too, in the order of its text. Of many, the first mistakes and
    the first warnings."""
    places = positions or Positions()
    checker = _Checker(document, known, places)
    with few_suggestions():
        with suppress(_Enough):
            checker.check()
        own = _undeclared(document) if places.extents and ("vars",) not in places.extents else ()
        problems = [*checker.problems, *islice(declarations.problems_of(document), PROBLEMS_LOOKED_FOR)]
    warnings = [each for each in problems if each.is_warning]
    mistakes = [each for each in problems if not each.is_warning]
    found = places.located([*mistakes, *islice(chain(warnings, own), PROBLEMS_LOOKED_FOR)])
    return sorted(found, key=lambda each: (each.line, each.column))


class _Enough(Exception):
    """There are so many mistakes that no more are looked for."""


class _Problems(list[Problem]):
    """The problems of a document and of the documents inside it."""

    def __init__(self) -> None:
        super().__init__()
        self._mistakes = 0

    def append(self, problem: Problem) -> None:
        """Add one.

        Raises:
            _Enough: there are many.
        """
        super().append(problem)
        self._mistakes += not problem.is_warning
        if self._mistakes > PROBLEMS_LOOKED_FOR:
            raise _Enough


def _undeclared(document: Document) -> Iterator[Problem]:
    """Variables that a document uses without declaring any."""
    users: dict[str, Path] = {}
    for id, step in document.steps.items():
        for name in VARIABLE.findall(str(step)):
            users.setdefault(name, ("steps", id))
    for name in document.vars:
        message = f"vars.{name} is not declared: it is what a start or the settings say, else null"
        advice = f"declare it: `vars: {{{name}: {{type: string}}}}`"
        path = users.get(name, ("output",))
        yield Problem(code="undeclared-variable", message=message, path=path, suggestion=advice, is_warning=True)


class _Spot(NamedTuple):
    """A value with expressions, and what they may say there."""

    value: Any
    path: Path
    types: Types
    """The types that the expressions know."""
    source: str = ""
    """The text as it is written, if `value` is not."""
    is_stored: bool = False
    """The value goes into the journal, so no secret may be in it."""
    may_use_all: bool = False
    """It may take `steps` as a whole."""


class _Checker:
    """One look at one document, or at the one inside a `map`."""

    def __init__(
        self,
        document: Document,
        known: Known,
        positions: Positions,
        *,
        path: Path = (),
        outer: Types | None = None,
        outer_steps: MutableMapping[str, Type] | None = None,
        found: _Problems | None = None,
    ) -> None:
        self.problems = _Problems() if found is None else found
        """The problems found so far, also those of the document around it."""
        self.outside: set[str] = set()
        """The steps around this document that it needs."""
        self._document = document
        self._known = known
        self._positions = positions
        self._path = path
        self.secrets = {name for name, each in document.vars.items() if each.secret}
        own = {id: self._result_of(step) for id, step in document.steps.items()}
        # Not a copy: each of thousands of maps would have one of thousands of steps.
        self._step_types: MutableMapping[str, Type] = (
            own if outer_steps is None else ChainMap(own, *_maps_of(outer_steps))
        )
        self._needs: dict[str, set[str]] = {}
        around = _scope(document) if outer is None else outer
        self._types: Types = CheckedTypes({**around, "steps": MAP(self._step_types)})

    def check(self) -> None:
        for id, step in self._document.steps.items():
            self._step(id, step, (*self._path, "steps", id))
        if self._document.has_output:
            spot = _Spot(self._document.output, (*self._path, "output"), self._types, is_stored=True, may_use_all=True)
            self._value(spot)
        for index, trigger in enumerate(self._document.triggers):
            types: Types = {"event": ANY if trigger.schedule is None else MAP({"time": STRING})}
            path: Path = (*self._path, "triggers", index)
            if isinstance(trigger.if_, str):
                self._condition(trigger.if_, (*path, "if"), types)
            if trigger.input is not UNSET:
                self._value(_Spot(trigger.input, (*path, "input"), types))
        self._order()

    def _result_of(self, step: FlowStep) -> Type:
        if not isinstance(step.on_error, str) and step.on_error.use_default is not UNSET:
            return ANY  # Its default may be something else.
        shape = self._known.built_ins.get(step.use)
        if shape is not None:
            return shape.result
        registered = self._known.find(step.use)
        return ANY if registered is None else registered.result

    # -- One step ----------------------------------------------------------------------------------------------

    def _step(self, id: str, step: FlowStep, path: Path) -> None:
        needs = self._needs.setdefault(id, set())
        self._use(step.use, (*path, "use"))
        self._given(step.use, step.with_, (*path, "with"), needs)
        if isinstance(step.if_, str):
            needs |= self._condition(step.if_, (*path, "if"), self._types)
        on_error = step.on_error
        if not isinstance(on_error, str) and on_error.use_default is not UNSET:
            types = {**self._types, "error": ANY}
            needs |= self._value(_Spot(on_error.use_default, (*path, "on_error", "use_default"), types, is_stored=True))
        if step.undo is not None:
            types = {**self._types, "result": self._result_of(step)}
            self._use(step.undo.use, (*path, "undo", "use"))
            needs |= self._value(_Spot(step.undo.with_, (*path, "undo", "with"), types))
        for index, other in enumerate(step.after):
            if other not in self._document.steps:
                self._unknown_step(other, (*path, "after", index))
            needs.add(other)
        if id in needs:
            advice = "use `result` in undo, or refer to another step"
            self._say("self-reference", f"step {id} needs its own result", path, advice)
            needs.discard(id)
        needs &= self._document.steps.keys()

    def _use(self, name: str, path: Path) -> None:
        if name in self._known.built_ins or name in self._known.registered:
            return
        near = did_you_mean(name, self._known.names)
        if is_remote(name):
            queue, step = queue_and_step(name)
            message = f"no worker is known that takes step {step} from queue {queue}"
            advice = near if near.startswith("did") else "begin its worker, and check with --server or --store"
        else:
            message = f"{name} is not a built-in, and no step or workflow is registered as {name} here"
            advice = near if near.startswith("did") else "import the module that defines it (in the shell: --app FILE)"
        self.problems.append(
            Problem(code="unknown-use", message=message, path=path, suggestion=advice, is_warning=True)
        )

    def _given(self, use: str, given: Any, path: Path, needs: set[str]) -> None:
        if is_remote(use):
            self._to_remote(use, given, path, needs)
            return
        shape = self._known.built_ins.get(use)
        if not isinstance(given, dict):
            if shape is not None or (isinstance(given, str) and "${{" in given):
                is_stored = shape is not None and not shape.takes_secrets
                needs |= self._value(_Spot(given, path, self._types, is_stored=is_stored))
            else:
                self._say("type", f"{dotted(path)} is not a map; give the arguments by name", path)
            return
        if shape is None:
            count = len(self.problems)
            found, template = self._compiled(_Spot(given, path, self._types))
            needs |= found
            registered = self._known.find(use)
            if registered is not None and len(self.problems) == count:
                self._signature(registered, given, template, path)
            return
        plain = {name: value for name, value in given.items() if name not in shape.deferred}
        needs |= self._value(_Spot(plain, path, self._types, is_stored=not shape.takes_secrets))
        self._arguments(plain, shape, path)
        if shape.deferred:
            needs |= self._body({name: given[name] for name in given if name in shape.deferred}, path)

    def _to_remote(self, use: str, given: Any, path: Path, needs: set[str]) -> None:
        """Check what a remote step is given: any value, which is in the journal, so no secret may be in it."""
        count = len(self.problems)
        spot = _Spot(given, path, self._types, is_stored=True)
        found, template = self._compiled(spot)
        needs |= found
        registered = self._known.find(use)
        if registered is None or len(self.problems) > count:
            return
        if isinstance(given, dict) and registered.whole.kind == "map":
            self._signature(registered, given, template, path)
            return
        is_found, wanted = template.check(self._types), registered.whole
        if is_found.kind != wanted.kind and not {"any", "null"} & {is_found.kind, wanted.kind}:
            self._say("arguments", f"{dotted(path)} is a {is_found}; {use} takes a {wanted}", path)

    def _signature(self, registered: Registered, given: Mapping[str, Any], template: Template, path: Path) -> None:
        """Check the arguments of a registered step or workflow by its own annotations."""
        use, taken = registered.name, registered.properties
        calls = f"{dotted(path[:-1])} calls {use}"
        meant: set[str] = set()
        for name in given:
            if name not in taken and not registered.takes_others:
                message = f"{calls}: it has no parameter {name!r}; it takes {', '.join(taken) or 'no arguments'}"
                near = did_you_mean(name, taken)
                advice = near if near.startswith("did") else ""
                meant.add(advice.removeprefix("did you mean ").removesuffix("?"))
                problem = Problem(code="arguments", message=message, path=(*path, name), suggestion=advice)
                self.problems.append(placed(problem, *self._positions.of_key((*path, name))))
        missing = sorted(registered.required - given.keys() - meant, key=list(taken).index)
        if missing:
            self._say("arguments", f"{calls}: it needs {', '.join(missing)}, which `with` does not give", path)
        types = template.check(self._types).fields or {}
        for name, schema in taken.items():
            found, wanted = types.get(name, ANY), type_of_schema(schema)
            # A type with a format, such as a decimal, is read from more than its schema says; null may be allowed.
            unsure = "any" in (found.kind, wanted.kind) or found.kind == "null" or "'format'" in str(schema)
            if not unsure and found.kind != wanted.kind:
                message = f"{dotted((*path, name))} is a {found}; {use} takes a {wanted}"
                self._say("arguments", message, (*path, name))

    def _arguments(self, given: Mapping[str, Any], shape: Shape, path: Path) -> None:
        """Check the arguments of a built-in, as far as they are known before the expressions have values."""

        def look(value: Any, wanted: inspect.Type, at: Path) -> Iterable[Problem] | None:
            if isinstance(value, str | dict | list) and at != path:
                template = compile_value(value, [])
                if not template.is_constant and not isinstance(value, dict | list):
                    return self._unlike(template, wanted, at)
                if not template.is_constant and isinstance(value, dict) and any(key.startswith("$") for key in value):
                    return ()
            return None

        wrong = list(misfits(given, shape.arguments, path, look))
        if shape.one_of is not None and not wrong:
            self._one_of(given, shape.one_of, path)
        for problem in wrong:
            by_key = problem.code in ("unknown-field", "name")
            place = self._positions.of_key(problem.path) if by_key else self._positions.of(problem.path)
            self.problems.append(placed(problem, *place))

    def _one_of(self, given: Mapping[str, Any], wanted: OneOf, path: Path) -> None:
        """Whether exactly one is given of arguments that exclude each other."""
        found = [name for name in wanted.names if given.get(name) is not None or (name == "put" and name in given)]
        if len(found) > 1:
            self._say("arguments", f"{dotted(path)} has {' and '.join(found)}", path, "keep one of them")
        elif not found and wanted.is_needed:
            self._say("arguments", f"{dotted(path)} needs one of {', '.join(wanted.names)}", path)

    def _unlike(self, template: Template, wanted: inspect.Type, path: Path) -> Iterator[Problem]:
        """Whether an expression gives what is certainly not wanted."""
        try:
            found = template.check(self._types)
        except ExpressionError:
            return  # It is reported where all expressions are.
        types = wanted.types if isinstance(wanted, inspect.UnionType) else (wanted,)
        words = [kind_of(each) for each in types]
        kinds = {_KINDS.get(word, "number" if "number" in word else "any" if not word else "string") for word in words}
        if found.kind not in ("any", "null") and "any" not in kinds and found.kind not in kinds:
            message = f"{dotted(path)} is a {found}; expected {either(dict.fromkeys(words))}"
            yield Problem(code="type", message=message, path=path)

    def _body(self, parts: dict[str, Any], path: Path) -> set[str]:
        """Check the code that `map` or `iterate` calls for each item, a step or a flow of its own; returns the steps
        that it needs."""
        if ("use" in parts) == ("do" in parts):
            self._say("body", f"{dotted(path)} needs either `use`, as a step has it, or `do` with steps", path)
            return set()
        plain = {"name": "body", **parts["do"]} if isinstance(parts.get("do"), dict) else parts.get("do", parts)
        kind: type[msgspec.Struct] = Document if "do" in parts else FlowStep
        own = (*path, "do") if "do" in parts else path
        wrong = list(misfits(plain, kind, own))
        if wrong:
            for problem in wrong:
                self.problems.append(problem)
            return set()
        types = {**self._types, "item": ANY, "index": type_of_schema("integer")}
        if "do" in parts:
            inner = msgspec.convert(plain, Document)
        else:
            inner = Document(name="body", steps={"body": msgspec.convert(plain, FlowStep)})
        checker = _Checker(
            inner,
            self._known,
            self._positions,
            path=own,
            outer=types,
            outer_steps=self._step_types,
            found=self.problems,
        )
        checker.secrets |= self.secrets
        if "do" in parts:
            checker.check()
        else:
            checker.check_body(path)
        return checker.outside

    def check_body(self, path: Path) -> None:
        """Check the only step of this document, which is written in the `with` of a `map`."""
        for id, step in self._document.steps.items():
            self._step(id, step, path)

    # -- Expressions -------------------------------------------------------------------------------------------

    def _condition(self, text: str, path: Path, types: Types) -> set[str]:
        whole = text if "${{" in text else f"${{{{ {text} }}}}"
        count = len(self.problems)
        needs, template = self._compiled(_Spot(whole, path, types, text, is_stored=True))
        if len(self.problems) == count:
            found = template.check(types)
            if found.kind not in ("any", "bool"):
                advice = "compare it, for example `!= null`"
                self._say("type", f"{dotted(path)} is a {found}; expected true or false", path, advice)
        return needs

    def _value(self, spot: _Spot) -> set[str]:
        """Check all expressions of a value; the steps that it needs."""
        return self._compiled(spot)[0]

    def _compiled(self, spot: _Spot) -> tuple[set[str], Template]:
        wrong: list[tuple[Path, ExpressionError]] = []
        template = compile_value(spot.value, wrong)
        for at, mistake in wrong:
            self._wrong_expression(spot, at, mistake)
        needs: set[str] = set()
        for at, expression in template.expressions:
            mistakes = [self._mistake_in(expression, each, spot, needs) for each in sorted(expression.references)]
            if not any(mistakes):
                try:
                    expression.check(spot.types)
                except ExpressionError as error:
                    mistakes = [plain(error)]  # Without this frame, which holds it.
            for each in mistakes:
                if each is not None:
                    self._wrong_expression(spot, at, each)
        return needs, template

    def _mistake_in(
        self, expression: Expression, reference: tuple[str, ...], spot: _Spot, needs: set[str]
    ) -> ExpressionError | None:
        """The mistake in a reference, in words of the document; the rest is left to the types. Collects steps."""
        root, name = reference[0], reference[1] if len(reference) > 1 else None
        if root not in spot.types:
            return _mistake(expression, root, f"`{root}` is known only {_ONLY[root]}") if root in _ONLY else None
        if root == "steps" and name is None:
            if spot.may_use_all:
                return None
            return _mistake(expression, root, "`steps` needs the name of a step here", "write steps.name")
        if root == "steps" and name is not None:
            needs.add(name)
            if name not in self._document.steps:
                self.outside.add(name)
            if name not in self._step_types:
                return _mistake(expression, name, f"there is no step {name}", did_you_mean(name, self._step_types))
        if root == "vars" and name in self.secrets and spot.is_stored:
            message = f"vars.{name} is a secret, and this value is stored in the journal"
            return _mistake(expression, name, message, "use it in `with` of http, llm, mcp, shell, docker or a step")
        if root == "vars" and name in self.secrets and expression.text.strip() != f"vars.{name}":
            message = f"vars.{name} is a secret: no expression can compute with it"
            return _mistake(expression, name, message, f"write ${{{{ vars.{name} }}}}, alone or in a text")
        return None

    def _wrong_expression(self, spot: _Spot, at: Path, error: ExpressionError) -> None:
        path = (*spot.path, *at)
        problem = Problem(code="expression", message=error.message, path=path, suggestion=error.suggestion)
        text: Any = spot.value
        for part in at:
            text = text[part]
        if isinstance(text, str):
            text = spot.source or text
            begin = max(text.find(error.expression), 0) if error.expression else 0
            problem = placed(problem, *self._positions.in_text(path, text, begin + (error.offset or 0)))
        self.problems.append(problem)

    def _unknown_step(self, name: str, path: Path) -> None:
        self._say("unknown-step", f"there is no step {name}", path, did_you_mean(name, self._document.steps))

    def _say(self, code: str, message: str, path: Path, suggestion: str = "") -> None:
        self.problems.append(Problem(code=code, message=message, path=path, suggestion=suggestion))

    # -- Order -------------------------------------------------------------------------------------------------

    def _order(self) -> None:
        graph = {id: set(needs) for id, needs in self._needs.items()}
        places = {id: place for place, id in enumerate(graph)}
        for circle in circles(graph):
            first = min(circle, key=places.__getitem__)
            turned = circle[circle.index(first) :] + circle[: circle.index(first)]
            left_out = ["..."] if len(turned) > CIRCLE_SHOWN_MAX else []
            shown = " needs ".join([*turned[:CIRCLE_SHOWN_MAX], *left_out, first])
            self._say(
                "circle", f"steps wait for each other: {shown}", (*self._path, "steps", first), "break the circle"
            )
        if not self._document.has_output or any(not each.is_warning for each in self.problems):
            return  # The mistake may be why a step is not needed.
        wanted: set[str] = set()
        left = [id for id, step in self._document.steps.items() if step.must_run]
        output = compile_value(self._document.output, [])
        if any(reference == ("steps",) for reference in output.references):
            return
        left += [each[1] for each in output.references if len(each) > 1 and each[0] == "steps"]
        while left:
            id = left.pop()
            if id not in wanted and id in self._needs:
                wanted.add(id)
                left += self._needs[id]
        for id in self._document.steps:
            if id not in wanted:
                message = f"step {id} never runs: neither the output nor another step needs it"
                path = (*self._path, "steps", id)
                advice = "give it `must_run: true`, or remove it"
                problem = Problem(code="unused-step", message=message, path=path, suggestion=advice, is_warning=True)
                self.problems.append(problem)


def circles(graph: Mapping[str, set[str]]) -> Iterator[list[str]]:
    """The circles in a graph of what needs what, each as the names along it; no more than a few."""
    left = {id: set(needs) for id, needs in graph.items()}
    for _ in range(CIRCLES_MAX):
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # It names each step before a step that needs it; the first is named again at the end.
            circle = list(reversed(error.args[1][1:]))
            yield circle
            left[circle[0]].discard(circle[1] if len(circle) > 1 else circle[0])
        else:
            return


def _maps_of(types: MutableMapping[str, Type]) -> list[MutableMapping[str, Type]]:
    return types.maps if isinstance(types, ChainMap) else [types]


def _mistake(expression: Expression, name: str, message: str, suggestion: str = "") -> ExpressionError:
    """A mistake at a name in an expression."""
    found = re.search(rf"\b{re.escape(name)}\b", expression.text)
    return ExpressionError(message, found.start() if found else 0, suggestion, expression.text)


def _scope(document: Document) -> dict[str, Type]:
    """The types of what all expressions of a document know, besides its steps."""
    return {
        "input": type_of_schema(input_schema(document)) if document.input else ANY,
        "vars": MAP({name: type_of_schema(variable_schema(each)) for name, each in document.vars.items()}),
        "run": MAP({"id": STRING}),
    }
