"""Flowbot's pipelines (`steps` with `capability` and `operation`, in order) and workflows (`tasks` with `action`).

Go templates become expressions where they are data: an event, an input, the result of a step. What computes more than
that is left as text and reported.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from outlive._features.flows.document.model import Identifier
from outlive._features.flows.other_systems.imported import Imported, Names, literal, name_of, note
from outlive._kernel.model.span import SPAN
from outlive.errors.document import Path

_TEMPLATE = re.compile(r"\{\{-?\s*(.*?)\s*-?\}\}", re.DOTALL)
_WORDS = re.compile(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)')
_PATH = re.compile(r"\.?([A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*)")
_TYPES = {"string": "string", "number": "number", "boolean": "boolean", "json": "any"}
_ERRORS: dict[str, str | int] = {"timeout": "TimeoutError", "rate_limited": 429, "unavailable": 503}
_STEP_FIELDS = {"name", "capability", "operation", "params", "retry", "describe", "description"}
_TASK_FIELDS = {"id", "action", "params", "conn", "retry", "describe", "vars"}


class _Retry(msgspec.Struct):
    max_attempts: int | None = None
    delay: int | str | None = None
    backoff: str | None = None
    max_delay: int | str | None = None
    retry_on: list[str] | None = None


class _Trigger(msgspec.Struct):
    type: str
    enabled: bool | None = None
    event: str | None = None
    cron: str | None = None
    cron_timeout: int | str | None = None
    webhook: dict[str, Any] | None = None
    rule: dict[str, Any] | None = None


class _Step(msgspec.Struct):
    name: str
    capability: str
    operation: str
    params: dict[str, Any] | None = None
    retry: _Retry | None = None


class _Pipeline(msgspec.Struct):
    name: str
    steps: list[_Step]
    enabled: bool | None = None
    resumable: bool | None = None
    triggers: list[_Trigger] | None = None


class _Input(msgspec.Struct):
    name: Identifier
    type: str = "string"
    required: bool | None = None


class _Task(msgspec.Struct):
    id: str
    action: str
    params: dict[str, Any] | None = None
    conn: list[str] | None = None
    retry: _Retry | None = None


class _Workflow(msgspec.Struct):
    name: str
    tasks: list[_Task]
    enabled: bool | None = None
    resumable: bool | None = None
    max_concurrency: int | None = None
    inputs: list[_Input] | None = None
    triggers: list[_Trigger] | None = None
    pipeline: list[str] | None = None


def shape_of_flowbot(data: Mapping[str, Any]) -> type[msgspec.Struct]:
    """The shape of a document of Flowbot, as far as we use it."""
    return _Workflow if isinstance(data.get("tasks"), list) else _Pipeline


def is_flowbot(data: Mapping[str, Any]) -> bool:
    """Whether a document is one of Flowbot's."""
    steps = data.get("steps")
    is_pipeline = isinstance(steps, list) and any(isinstance(each, dict) and "capability" in each for each in steps)
    return is_pipeline or isinstance(data.get("tasks"), list)


def from_flowbot(data: Mapping[str, Any]) -> Imported:
    """The flow that does what a pipeline or a workflow of Flowbot does."""
    imported = Imported({"name": name_of(data.get("name"), "flow")})
    description = data.get("description") or data.get("describe")
    if description:
        imported.data["description"] = " ".join(str(description).split())
    if data.get("enabled") is False:
        note(imported, "it is disabled", ("enabled",), "disable it in the library, too")
    _add_inputs(imported, data.get("inputs"))
    _add_triggers(imported, data.get("triggers"))
    imported.data["steps"] = _Steps(imported, data).steps()
    if not imported.data["steps"]:
        imported.data["steps"] = {"nothing": {"use": "noop"}}
    if "resumable" in data and not data["resumable"]:
        imported.data["resumable"] = False
    return imported


def _add_inputs(imported: Imported, inputs: Any) -> None:
    for index, each in enumerate(inputs if isinstance(inputs, list) else []):
        kind = _TYPES.get(str(each.get("type", "string")))
        if kind is None:
            note(imported, f"the type {each.get('type')!r} is not known", ("inputs", index, "type"))
        schema: dict[str, Any] = {"type": kind or "any"}
        schema |= {word: each[word] for word in ("description", "default") if word in each}
        if not each.get("required") and "default" not in each:
            schema["required"] = False
        imported.data.setdefault("input", {})[str(each.get("name"))] = schema


def _add_triggers(imported: Imported, triggers: Any) -> None:
    found: list[dict[str, Any]] = []
    for index, trigger in enumerate(triggers if isinstance(triggers, list) else []):
        path: Path = ("triggers", index)
        rule = {**trigger, **(trigger.get("rule") or {})} if isinstance(trigger, dict) else {}
        if rule.get("enabled") is False:
            note(imported, "a disabled trigger is left out", path)
            continue
        match rule.get("type"):
            case "event":
                found.append({"event": str(rule.get("event"))})
            case "cron":
                # A worker of Flowbot skips a tick while the run of the last one goes on, as we do.
                found.append({"schedule": str(rule.get("cron") or rule.get("spec") or "")})
                if rule.get("cron_timeout"):
                    imported.data["timeout"] = _span(imported, rule["cron_timeout"], (*path, "cron_timeout"))
            case "webhook":
                found.append(_webhook(imported, rule, path))
            case "manual":
                found.append({"manual": True})
            case other:
                note(imported, f"the trigger {other!r} is not known", path)
    if found:
        imported.data["triggers"] = found


def _webhook(imported: Imported, rule: Mapping[str, Any], path: Path) -> dict[str, Any]:
    said = {**rule, **(rule.get("webhook") or {})}
    auth = said.get("auth")
    said |= auth if isinstance(auth, dict) else {}
    made: dict[str, Any] = {"webhook": "/" + str(said.get("path", "")).strip("/")}
    for word, ours, variable in (("token", "token", "webhook_token"), ("hmac_secret", "hmac", "webhook_hmac")):
        if said.get(word):
            variables = imported.data.setdefault("vars", {})
            variables[variable] = {"type": "string", "secret": True, "env": variable.upper()}
            made[ours] = variable
            note(imported, f"the {word} of a webhook is a secret, and not in the flow", path, f"set {variable.upper()}")
    if "hmac" in made:
        layout = "a signature is read as Standard Webhooks lays it out"
        note(imported, layout, path, "for GitHub's: hmac: { key: webhook_hmac, layout: github }")
    if str(said.get("method", "POST")).upper() != "POST":
        note(imported, "a webhook is called with POST", path)
    return made


def _span(imported: Imported, given: Any, path: Path) -> float | str:
    if isinstance(given, int) and not isinstance(given, bool):
        return given / 1_000_000_000  # Go writes durations as nanoseconds.
    text = str(given)
    if re.match(SPAN, text):
        return text
    note(imported, f"{text!r} is not a time that we know", path)
    return 1.0


class _Steps:
    """The steps of one pipeline or workflow."""

    def __init__(self, imported: Imported, data: Mapping[str, Any]) -> None:
        self._imported = imported
        self._data = data
        self._names = Names()
        self._is_workflow = isinstance(data.get("tasks"), list)

    def steps(self) -> dict[str, Any]:
        """In the order of Flowbot."""
        return self._tasks() if self._is_workflow else self._pipeline()

    def _pipeline(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        raw = self._data.get("steps") or []
        for each in raw:
            _ = self._names[each.get("name")]
        for index, step in enumerate(raw):
            path: Path = ("steps", index)
            made: dict[str, Any] = {
                "use": f"{step.get('capability')}.{step.get('operation')}",
                "with": self._value(step.get("params") or {}, (*path, "params")),
            }
            self._add_common(step, made, path, _STEP_FIELDS)
            if found:
                made["after"] = [list(found)[-1]]
            found[self._names[step.get("name")]] = made
        return found

    def _tasks(self) -> dict[str, Any]:
        tasks = {str(each.get("id")): (each, index) for index, each in enumerate(self._data["tasks"])}
        for id in tasks:
            _ = self._names[id]
        order = [str(each) for each in self._data.get("pipeline") or tasks]
        for id in order:
            if id not in tasks:
                note(self._imported, f"there is no task {id}", ("pipeline",))
        for id, (_, index) in tasks.items():
            if id not in order:
                note(self._imported, f"task {id} is not in `pipeline`, so it is left out", ("tasks", index))
        at_once = int(self._data.get("max_concurrency") or 1)
        if at_once > 1:
            self._imported.data["concurrency"] = at_once
        found: dict[str, Any] = {}
        for id in order:
            if id in tasks:
                task, index = tasks[id]
                made = self._task(task, ("tasks", index))
                before = [self._names[each] for each in task.get("conn") or []] if at_once > 1 else list(found)[-1:]
                if before:
                    made["after"] = before
                found[self._names[id]] = made
        return found

    def _task(self, task: Mapping[str, Any], path: Path) -> dict[str, Any]:
        kind, _, rest = str(task.get("action", "")).partition(":")
        given = self._value(task.get("params") or {}, (*path, "params"))
        made: dict[str, Any]
        match kind:
            case "capability":
                made = {"use": rest, "with": given}
            case "mapper":
                made = {"use": "noop", "with": given}
            case "docker":
                made = {"use": "docker", "with": self._program("image", rest, given, path)}
            case "machine":
                made = {"use": f"machine.{rest}", "with": given}
                note(self._imported, "commands on other machines are not built in", (*path, "action"), "write a step")
            case _:
                command = rest if kind == "shell" else str(task.get("action", ""))
                made = {"use": "shell", "with": self._program("command", command, given, path)}
        if task.get("vars"):
            note(self._imported, "`vars` of a task are not carried over", (*path, "vars"))
        self._add_common(task, made, path, _TASK_FIELDS)
        return made

    def _program(self, field: str, name: str, given: Mapping[str, Any], path: Path) -> dict[str, Any]:
        """The arguments of a container or a shell: only a worker's settings may say what that runs."""
        note(
            self._imported,
            f"a flow cannot say by itself what runs on a machine: {name}",
            (*path, "action"),
            f"allow it in the settings of the worker, and name that in `{field}`",
        )
        for word in given.keys() - {"cmd"}:
            note(self._imported, f"`{word}` is not carried over", (*path, "params", word))
        return {field: name, "arguments": ["sh", "-c", given["cmd"]]} if "cmd" in given else {field: name}

    def _add_common(self, step: Mapping[str, Any], made: dict[str, Any], path: Path, known: set[str]) -> None:
        if step.get("describe") or step.get("description"):
            made["description"] = str(step.get("describe") or step.get("description"))
        if step.get("retry"):
            made["retry"] = self._retry(step["retry"], (*path, "retry"))
        for word in step.keys() - known:
            note(self._imported, f"`{word}` is not carried over", (*path, word))

    def _retry(self, said: Mapping[str, Any], path: Path) -> dict[str, Any]:
        made: dict[str, Any] = {"attempts": max(1, int(said.get("max_attempts") or 1))}
        made["first"] = _span(self._imported, said.get("delay") or "1s", (*path, "delay"))
        made["cap"] = _span(self._imported, said.get("max_delay") or "30s", (*path, "max_delay"))
        made["kind"] = str(said.get("backoff") or "fixed")
        if said.get("retry_on"):
            made["on"] = [_ERRORS.get(str(each), str(each)) for each in said["retry_on"]]
        return made

    # -- Templates -------------------------------------------------------------------------------------------------

    def _value(self, value: Any, path: Path) -> Any:
        if isinstance(value, dict):
            return {str(key): self._value(each, (*path, key)) for key, each in value.items()}
        if isinstance(value, list):
            return [self._value(each, (*path, index)) for index, each in enumerate(value)]
        if not isinstance(value, str) or "{{" not in value:
            return literal(value)
        made, at = "", 0
        for match in _TEMPLATE.finditer(value):
            expression = self._expression(match[1])
            if expression is None:
                message = f"the template {match[0]} computes something that is not carried over"
                note(self._imported, message, path, "write it as an expression")
            made += value[at : match.start()] + (f"${{{{ {expression} }}}}" if expression else match[0])
            at = match.end()
        return made + value[at:]

    def _expression(self, text: str) -> str | None:
        """The expression of a template, if it is only data."""
        words = [quoted or plain for quoted, plain in _WORDS.findall(text)]
        if len(words) >= 2 and words[0] in ("event", "input", "step", "json", "len"):
            if words[0] == "step":
                return self._step_path(words[1], words[2:])
            if words[0] in ("event", "input"):
                return _joined("input", words[1:])
            inner = self._expression(" ".join(words[1:])) if len(words) == 2 else None
            return None if inner is None else inner if words[0] == "json" else f"size({inner})"
        found = _PATH.fullmatch(text)
        if found is None:
            return None
        first, *rest = found[1].split(".")
        if first in ("event", "input", "Event", "Input"):
            return _joined("input", rest)
        if first in ("step", "steps", "Steps") and rest:
            return self._step_path(rest[0], rest[1:])
        if first in self._names:
            return self._step_path(first, rest)
        return None

    def _step_path(self, name: str, fields: list[str]) -> str | None:
        if name not in self._names:
            return None
        # A task of a workflow keeps its result under this name.
        own = fields[1:] if self._is_workflow and fields[:1] == ["result"] else fields
        return _joined(f"steps.{self._names[name]}", own)


def _joined(root: str, fields: list[str]) -> str | None:
    text = root
    for field in (part for each in fields for part in each.split(".")):
        if re.fullmatch(r"[A-Za-z_]\w*", field):
            text += f".{field}"
        elif re.fullmatch(r"[\w-]+", field):
            text += f'["{field}"]'
        else:
            return None
    return text
