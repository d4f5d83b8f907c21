"""Stepflow's flows: `steps` in a list with a `component` each, references as `$step` and `$input`, `onError`.

Carried over: the order by references, `mustExecute`, `onError`, schemas of input and variables, tests, Stepflow's own
components, and flows that a step puts into a blob: in place for `map` and `iterate`, as documents of their own for
`eval`. Results keep Stepflow's form, `{outcome, result}`, wherever a reference can see it. Not carried over: code in
blobs (`udf`), and routes, which belong to the configuration; answers of its mock plugins are (`stepflow_mocks`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import msgspec

from outlive._cel import ExpressionError
from outlive._features.flows.document.inputs import KEYWORDS
from outlive._features.flows.document.references import reference
from outlive._features.flows.document.validating import misfits
from outlive._features.flows.other_systems.imported import Imported, Names, literal, name_of, note
from outlive.errors.document import Path

Given: TypeAlias = Mapping[str, Any]

_STEP_FIELDS = {"id", "component", "input", "onError", "mustExecute", "metadata", "skipIf", "skip", "description"}
_REFERENCES = ("$step", "$input", "$variable")
_BLOBS = {"put_blob"}
_LOOPS = {"map", "iterate"}
_RENAMED = {
    ("put_blob", "blob_id"): "id",
    ("openai", "response"): "text",
    ("load_file", "metadata.size_bytes"): "size",
}
"""Fields of results that have another name here."""
_SUCCESS = "success"
_TYPES = {"string", "integer", "number", "boolean", "array", "object"}
_FILE_FORMATS = {"json": "json", "yml": "yaml", "yaml": "yaml"}
"""By the end of a file's name, what Stepflow calls its format; else `text`."""
_OWN_WORDS = re.compile(r'step "[^"]*" failed')
"""Stepflow's own message about a step, which no error has here."""


class _OnError(msgspec.Struct):
    action: str
    maxRetries: int | None = None  # noqa: N815 (as Stepflow writes it)


class _Step(msgspec.Struct):
    id: str
    component: str
    onError: _OnError | str | None = None  # noqa: N815
    mustExecute: bool | None = None  # noqa: N815


class _Case(msgspec.Struct):
    name: str | None = None
    description: str | None = None


class _Test(msgspec.Struct):
    cases: list[_Case] | None = None


class _Flow(msgspec.Struct):
    steps: list[_Step] | dict[str, dict[str, Any]]
    name: str | None = None
    description: str | None = None
    metadata: dict[str, Any] | None = None
    schemas: dict[str, Any] | None = None
    test: _Test | None = None


SHAPE: type[msgspec.Struct] = _Flow
"""The shape of a document of Stepflow, as far as we use it."""


def is_stepflow(data: Mapping[str, Any]) -> bool:
    """Whether a document is one of Stepflow's."""
    by_step = any(isinstance(each, dict) and "component" in each for each, _ in steps_of(data, ()))
    return by_step or "stepflow" in str(data.get("schema", ""))


def from_stepflow(data: Mapping[str, Any]) -> Imported:
    """The flow that does what a flow of Stepflow does."""
    title = data.get("name") or "Stepflow flow"
    imported = Imported({"name": name_of(title, "flow")})
    description = ": ".join(str(each) for each in (data.get("name"), data.get("description")) if each)
    if description:
        imported.data["description"] = description
    schemas = _properties(data.get("schemas"))
    old = data.get("input")
    within = old.get("schema") if isinstance(old, dict) else None
    _add_input(imported, schemas.get("input") or data.get("input_schema") or data.get("inputSchema") or within)
    _add_variables(imported, schemas.get("variables") or data.get("variables_schema") or data.get("variables"))
    imported.data |= _Body(imported, "input").body(data, ())
    _add_tests(imported, data.get("test"))
    if data.get("metadata") or data.get("version"):
        version = {"version": data["version"]} if data.get("version") else {}
        imported.data["metadata"] = {**version, **(data.get("metadata") or {})}
    if data.get("examples"):
        note(imported, "examples are not carried over", ("examples",), "make them tests, with what is expected")
    return imported


def _properties(schema: Any) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _names(schema: Any) -> list[Any]:
    found = schema.get("required") if isinstance(schema, dict) else None
    return found if isinstance(found, list) else []


def _kept(imported: Imported, schema: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """A schema without the keywords that we do not check."""
    found: dict[str, Any] = {}
    for word, value in schema.items():
        if word not in KEYWORDS:
            note(imported, f"`{word}` of a schema is not checked here, and left out", path)
        elif word == "properties" and isinstance(value, dict):
            found[word] = {
                name: _kept(imported, each, path) if isinstance(each, dict) else each for name, each in value.items()
            }
        elif word in ("items", "additionalProperties") and isinstance(value, dict):
            found[word] = _kept(imported, value, path)
        else:
            found[word] = value
    return found


def _add_input(imported: Imported, schema: Any) -> None:
    if not isinstance(schema, dict):
        return
    if schema.get("type", "object") != "object":
        message = f"the input is a {schema['type']}, and the input of a flow has names"
        note(imported, message, ("schemas",), "any input is taken as it is")
        return
    required = _names(schema)
    found: dict[str, Any] = {}
    for name, each in _properties(schema).items():
        own = _kept(imported, each, ("schemas",)) if isinstance(each, dict) else {}
        found[name] = own if name in required or "default" in own else {**own, "required": False}
    if found:
        imported.data["input"] = found


def _add_variables(imported: Imported, schema: Any) -> None:
    required = _names(schema)
    for name, each in _properties(schema).items():
        own = dict(each) if isinstance(each, dict) else {}
        path: Path = ("schemas", "properties", "variables", "properties", name)
        is_secret = any(own.pop(word, False) for word in ("is_secret", "isSecret", "secret"))
        own = _kept(imported, own, path)
        if isinstance(own.get("type"), list) and len(types := [each for each in own["type"] if each != "null"]) == 1:
            # Without a value it is null, which its own type does not allow.
            own["type"] = types[0]
            if own.get("default", ...) is None:
                del own["default"]
            is_nullable = True
        else:
            is_nullable = False
        variable: dict[str, Any] = {
            key: own.pop(key) for key in ("type", "description") if isinstance(own.get(key), str)
        }
        if "default" in own:
            default = own.pop("default")
            if is_secret:
                note(imported, f"variable {name} is a secret with a default, which is left out", path)
            else:
                variable["default"] = default
        if own:
            variable["schema"] = own
        if is_secret:
            variable |= {"secret": True, "env": name.upper()}
        if (name not in required or is_nullable) and "default" not in variable:
            variable["required"] = False
        imported.data.setdefault("vars", {})[name] = variable


def _add_tests(imported: Imported, test: Any) -> None:
    cases = test.get("cases") if isinstance(test, dict) else None
    for index, case in enumerate(cases if isinstance(cases, list) else []):
        own: dict[str, Any] = {"name": str(case.get("name") or f"case {index + 1}")}
        own |= {key: case[key] for key in ("description", "input") if key in case}
        expected = case.get("output")
        if isinstance(expected, dict) and expected.get("outcome") == "success":
            own["output"] = expected.get("result")
        elif isinstance(expected, dict) and expected.get("outcome") == "failed":
            error = expected.get("error")
            said = error.get("message") if isinstance(error, dict) else None
            own["error"] = {} if said is None or _OWN_WORDS.match(str(said)) else {"message": str(said)}
        elif expected is not None:
            note(imported, "what this test expects is not known here", ("test", "cases", index, "output"))
        imported.data.setdefault("tests", []).append(own)
    if isinstance(test, dict) and (test.get("servers") or test.get("config")):
        note(imported, "servers and configuration of tests are not carried over", ("test",), "mock the steps by name")


def steps_of(data: Given, path: Path) -> Iterator[tuple[Any, Path]]:
    """The steps, each with its place: a list, or a map by id as in older documents."""
    raw = data.get("steps")
    if isinstance(raw, dict):
        for id, each in raw.items():
            yield ({"id": id, **each} if isinstance(each, dict) else each), (*path, "steps", id)
    for index, each in enumerate(raw if isinstance(raw, list) else []):
        yield each, (*path, "steps", index)


class _Body:
    """The steps and the output of one flow, or of one inside a blob."""

    def __init__(self, imported: Imported, root: str) -> None:
        self._imported = imported
        self._root = root
        """The meaning of `$input`: the input of the flow, or the item of a `map`."""
        self._names = Names()
        self._flows: dict[str, tuple[Mapping[str, Any], Path]] = {}
        """Flows that steps put into blobs, by the step."""
        self._components: dict[str, str] = {}
        """Which of Stepflow's own components each step calls."""
        self._inputs: dict[str, Any] = {}
        """The input of each step, as Stepflow has it."""

    def body(self, data: Given, path: Path) -> dict[str, Any]:
        """`steps` and `output`."""
        given = list(steps_of(data, path))
        for step, at in given:
            self._find_flow(step, at)
            if isinstance(step, dict):
                self._components[str(step.get("id"))] = _own_name(step.get("component")) or ""
                self._inputs[str(step.get("id"))] = step.get("input")
        steps: dict[str, Any] = {}
        for step, at in given:
            if not isinstance(step, dict) or "id" not in step or "component" not in step:
                note(self._imported, "a step needs an `id` and a `component`", at)
            elif step["id"] not in self._flows:
                steps[self._names[step["id"]]] = self._step(step, at)
        found: dict[str, Any] = {"steps": steps or {"nothing": {"use": "noop"}}}
        if "output" in data:
            found["output"] = self._value(data["output"], (*path, "output"))
        return found

    def _find_flow(self, step: Any, path: Path) -> None:
        """A step that only stores a flow is not needed: the flow stands where it is used."""
        if isinstance(step, dict) and _own_name(step.get("component")) in _BLOBS:
            given = step.get("input") or {}
            stored = given.get("data") if isinstance(given, dict) else None
            flow = stored.get("$literal", stored) if isinstance(stored, dict) else None
            if isinstance(stored, dict) and isinstance(flow, dict) and _is_flow(flow):
                at = (*path, "input", "data", "$literal") if "$literal" in stored else (*path, "input", "data")
                self._flows[str(step.get("id"))] = (flow, at)

    def _step(self, step: Given, path: Path) -> dict[str, Any]:
        component = str(step["component"])
        own = _own_name(component)
        made = self._built_in(own, step, path) if own is not None else None
        if made is None:
            made = {
                "use": component.strip("/").replace("/", "."),
                "with": self._value(step.get("input", {}), (*path, "input")),
            }
            if own == "udf" or component.endswith("/udf"):
                message = "code inside a flow is not carried over"
                note(self._imported, message, (*path, "component"), "write it as a step in Python, and use its name")
        if step.get("mustExecute"):
            made["must_run"] = True
        for word in ("description", "metadata"):
            if step.get(word):
                made[word] = step[word]
        self._on_error(step.get("onError"), made, (*path, "onError"))
        for word in ("skipIf", "skip"):
            if step.get(word) is not None:
                self._skip(step[word], made, (*path, word))
        for word in step.keys() - _STEP_FIELDS:
            note(self._imported, f"`{word}` of a step is not carried over", (*path, word))
        return made

    def _on_error(self, said: Any, made: dict[str, Any], path: Path) -> None:
        if said is None:
            return
        given: Given = said if isinstance(said, dict) else {}
        match given.get("action", said):
            case "fail" | "terminate":
                pass
            case "useDefault":
                made["on_error"] = {"use_default": literal(given.get("defaultValue"))}
            case "skip":
                made["on_error"] = {"use_default": None}
                note(self._imported, "a skipped step has the result null here", path, "steps that use it see null")
            case "retry":
                made["on_error"] = {
                    "retry": {"attempts": (given["maxRetries"] if given.get("maxRetries") is not None else 3) + 1}
                }
            case other:
                note(self._imported, f"the action {other!r} is not known", path)

    def _skip(self, condition: Any, made: dict[str, Any], path: Path) -> None:
        text = self._value(condition, path)
        if isinstance(text, str) and text.startswith("${{") and text.endswith("}}"):
            made["if"] = f"${{{{ {text[3:-2].strip()} != true }}}}"
        elif isinstance(text, bool):
            made["if"] = not text
        else:
            note(self._imported, "this condition is not carried over", path, "write it as `if`")

    # -- Stepflow's own components ---------------------------------------------------------------------------------

    def _built_in(self, name: str, step: Given, path: Path) -> dict[str, Any] | None:
        raw = step.get("input")
        given: Given = raw if isinstance(raw, dict) else {}
        at = (*path, "input")
        makers: dict[str, Callable[[], dict[str, Any]]] = {
            "noop": lambda: {"use": "noop", "with": self._value(given, at)},
            "sleep": lambda: self._sleep(given, at),
            "create_messages": lambda: self._messages(given, at),
            "openai": lambda: {"use": "llm", "with": self._value(_renamed(given, {"api_key": "key"}), at)},
            "put_blob": lambda: {"use": "blob", "with": {"put": self._value(given.get("data"), (*at, "data"))}},
            "get_blob": lambda: {"use": "blob", "with": {"get": self._value(given.get("blob_id"), (*at, "blob_id"))}},
            "load_file": lambda: {"use": "blob", "with": {"file": self._value(given.get("path"), (*at, "path"))}},
            "map": lambda: self._loop("map", given, at),
            "iterate": lambda: self._loop("iterate", given, at),
            "eval": lambda: self._flow(given, at),
        }
        return makers[name]() if name in makers else None

    def _sleep(self, given: Given, path: Path) -> dict[str, Any]:
        for word, unit in (("seconds", 1), ("duration_seconds", 1), ("duration_ms", 1000), ("milliseconds", 1000)):
            value = given.get(word)
            if isinstance(value, int | float):
                return {"use": "sleep", "with": {"seconds": value / unit}}
            if value is not None:
                return {"use": "sleep", "with": {"seconds": self._value(value, (*path, word))}}
        note(self._imported, "it does not say how long to sleep", path)
        return {"use": "sleep", "with": {"seconds": 0}}

    def _messages(self, given: Given, path: Path) -> dict[str, Any]:
        roles = (("system", "system_instructions"), ("user", "user_prompt"))
        messages = [
            {"role": role, "content": self._value(given[word], (*path, word))} for role, word in roles if word in given
        ]
        return {"use": "noop", "with": {"messages": messages}}

    def _loop(self, name: str, given: Given, path: Path) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if name == "map":
            made["items"] = self._value(given.get("items", []), (*path, "items"))
            if "max_concurrency" in given:
                made["concurrency"] = given["max_concurrency"]
        else:
            made["start"] = self._value(given.get("initial_input"), (*path, "initial_input"))
            if "max_iterations" in given:
                made["max_iterations"] = given["max_iterations"]
        flow, at = self._flow_in(given, path)
        if flow is None:
            message = "the flow that it calls is not in this document"
            note(self._imported, message, path, "name it in `use`")
            made |= {"use": "flow", "with": {"name": "unknown", "input": "${{ item }}"}}
        else:
            made["do"] = _Body(self._imported, "item").body(flow, at)
            if name == "map":
                # Stepflow has an outcome for each item, and a failed one fails no other.
                made |= {"tolerate": "100%"}
                made["do"]["output"] = {"outcome": _SUCCESS, "result": made["do"].get("output")}
        return {"use": name, "with": made}

    def _flow(self, given: Given, path: Path) -> dict[str, Any]:
        flow, at = self._flow_in(given, path)
        if flow is None:
            name = "unknown"
            note(self._imported, "the flow that it calls is not in this document", path, "name it in `name`")
        else:
            name = self._inner(flow, at)
            advice = f"publish {name} too"
            note(self._imported, f"the flow inside is a document of its own here, {name}", at, advice)
        return {"use": "flow", "with": {"name": name, "input": self._value(given.get("input", {}), (*path, "input"))}}

    def _inner(self, flow: Given, at: Path) -> str:
        """The name of the document that a flow inside this one has become."""
        found = from_stepflow(flow)
        outer = str(self._imported.data["name"])
        wanted = found.data["name"] if flow.get("name") else f"{outer}_inner"
        name, number, known = wanted, 1, self._imported.inner
        while name == outer or known.get(name, found.data | {"name": name}) != found.data | {"name": name}:
            number += 1
            name = f"{wanted}_{number}"
        known[name] = found.data | {"name": name}
        known |= found.inner
        self._imported.problems += [replace(each, path=(*at, *each.path)) for each in found.problems]
        return name

    def _flow_in(self, given: Given, path: Path) -> tuple[Given | None, Path]:
        """The flow that a component is given: in place, or by the step that put it into a blob."""
        for word in ("workflow", "flow"):
            found = given.get(word)
            if isinstance(found, dict) and _is_flow(found):
                return found, (*path, word)
            if isinstance(found, dict) and _is_flow(found.get("$literal")):
                return found["$literal"], (*path, word, "$literal")
        by_id = given.get("flow_id")
        step = by_id.get("$step") if isinstance(by_id, dict) else None
        return self._flows.get(str(step), (None, path))

    # -- Values ----------------------------------------------------------------------------------------------------

    def _value(self, value: Any, path: Path) -> Any:
        if isinstance(value, list):
            return [self._value(each, (*path, index)) for index, each in enumerate(value)]
        if not isinstance(value, dict):
            return literal(value)
        form = next((word for word in _REFERENCES if word in value), None)
        if form is not None:
            return self._reference(form, value, path)
        if "$literal" in value:
            return literal(value["$literal"])
        if "$from" in value:
            return self._old_reference(value, path)
        known = ("$if", "then", "else", "$coalesce")
        return {
            key if key in known or not key.startswith("$") else f"_{key}": self._value(each, (*path, key))
            for key, each in value.items()
        }

    def _reference(self, form: str, value: Mapping[str, Any], path: Path) -> Any:
        given, within = value[form], value.get("path", "$")
        if form == "$step":
            field = str(within).removeprefix("$").removeprefix(".")
            component = self._components.get(str(given), "")
            if (result := self._own_result(component, value, field, path)) is not None:
                return result
            within = _RENAMED.get((component, field), within)
            if isinstance(given, str) and given in self._flows:
                message = f"step {given} only stored a flow, and is not there any more"
                note(self._imported, message, path, "the flow stands where it is used")
            given = self._names[given] if isinstance(given, str) else given
        try:
            text, _ = reference(form, given, within)
        except ExpressionError as error:
            note(self._imported, f"this reference cannot be read: {error.message}", path)
            return None
        if form == "$input" and self._root != "input":
            text = f"{self._root}{text.removeprefix('input')}"
        elif form == "$input":
            self._allow_input(text)
        for word in value.keys() - {form, "path", "default"}:
            note(self._imported, f"`{word}` of a reference is not carried over", (*path, word))
        made = f"${{{{ {text} }}}}"
        return {"$coalesce": [made, self._value(value["default"], (*path, "default"))]} if "default" in value else made

    def _own_result(self, component: str, value: Mapping[str, Any], field: str, path: Path) -> Any:
        """A result of one of Stepflow's own components which has another form here; None if it has the same."""

        def part(field: str) -> Any:
            return self._reference("$step", {**value, "path": f"$.{field}"}, path)

        match component, field:
            case "map", "":
                return {name: part(name) for name in ("results", "successful", "failed")}
            case "map", "results":
                id = self._names[str(value["$step"])]
                return f'${{{{ steps.{id}.results.map(it, it == null ? {{"outcome": "failed"}} : it) }}}}'
            case "eval", "":
                return {"result": part("result")}
            case "eval", "result":
                return {"outcome": _SUCCESS, "result": part("result.result")}
            case "eval", "result.outcome":
                return _SUCCESS
            case "eval", _ if (own := field.removeprefix("result.result")) != field:
                text, _ = reference("$step", self._names[str(value["$step"])], f"${own}")
                return f"${{{{ {text} }}}}"
            case "load_file", "metadata":
                return {name: part(f"metadata.{name}") for name in ("path", "size_bytes", "format")}
            case "load_file", "metadata.path":
                return self._value(self._file(value), path)
            case "load_file", "metadata.format":
                suffix = str(self._file(value)).rpartition(".")[2].lower()
                return _FILE_FORMATS.get(suffix, "text")
            case "load_file", _ if field.startswith("metadata.") and (component, field) not in _RENAMED:
                note(self._imported, f"`{field}` of a file is not known here", path)
                return ""
        return None

    def _file(self, value: Mapping[str, Any]) -> Any:
        """The path of the file that a step loads."""
        given = self._inputs.get(str(value["$step"]))
        return given.get("path") if isinstance(given, dict) else None

    def _allow_input(self, text: str) -> None:
        """A schema of Stepflow allows input that it does not name, and one of ours does not."""
        name = re.match(r"input\.(\w+)", text)
        known = self._imported.data.get("input")
        if name is not None and known is not None and name[1] not in known:
            known[name[1]] = {"type": "any", "required": False}

    def _old_reference(self, value: Mapping[str, Any], path: Path) -> Any:
        """`{$from: {step: a}, path: b}`, as Stepflow wrote it before."""
        source = value["$from"]
        if isinstance(source, dict) and "step" in source:
            return self._reference("$step", {"$step": source["step"], "path": value.get("path", "$")}, path)
        if isinstance(source, dict) and "workflow" in source:
            return self._reference("$input", {"$input": value.get("path", "$")}, path)
        note(self._imported, "this reference cannot be read", path)
        return None


def _is_flow(value: Any) -> bool:
    return isinstance(value, dict) and "steps" in value and not any(misfits(value, SHAPE))


def _renamed(given: Given, names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(name, name): value for name, value in given.items()}


def _own_name(component: Any) -> str | None:
    """The name of one of Stepflow's own components: `/builtin/map`, or `/map`."""
    parts = str(component or "").strip("/").split("/")
    if len(parts) == 1 or (len(parts) == 2 and parts[0] == "builtin"):
        return parts[-1]
    return parts[-1] if parts[-1] in _LOOPS and parts[0] == "python" else None
