"""Changes of the steps of a flow for one run: JSON merge patches (RFC 7396), by step.

Such a change is code: it can let a step call anything with any arguments. So only the program itself and an admin of
the whole store change everything; any other one who starts a run changes policies, or what the document lists in
`overridable`, and gives values there and no expressions. This is checked where the arguments of a flow are taken
(`FlowSignature.encode`, `checked_input`), and again where the run begins, by the mark that is among its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from outlive._features.flows.document.model import Document, FlowStep
from outlive._features.flows.document.problems import did_you_mean
from outlive._features.flows.document.references import compile_value
from outlive._features.flows.outside.secrets import check_data
from outlive.errors.document import FlowError, FlowInputError, Problem
from outlive.errors.outside import SecretError

POLICIES = ("retry", "timeout", "heartbeat_timeout", "limit")
"""The parts that a start may change of a step whose document does not say otherwise."""
_ARGUMENT = "with."


def merge_patch(target: Any, patch: Any) -> Any:
    """The target with a patch applied: objects are merged, null removes, anything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def overridden(document: Document, overrides: Mapping[str, Any], *, freely: bool = True) -> Document:
    """The document with changed steps; unless it is changed freely, what is given for `with` is data.

    Raises:
        FlowError: a step is not there, or the changed document is none.
    """
    plain = msgspec.to_builtins(document)
    for id, patch in overrides.items():
        path = ("overrides", id)
        if id not in document.steps:
            advice = did_you_mean(id, document.steps)
            raise FlowError(
                [Problem(code="unknown-step", message=f"no step is called {id!r}", path=path, suggestion=advice)]
            )
        if not isinstance(patch, dict):
            message = f"what changes step {id} is not an object"
            raise FlowError([Problem(code="bad-override", message=message, path=path)])
        plain["steps"][id] = merge_patch(plain["steps"][id], patch if freely else _as_data(patch))
    try:
        changed = msgspec.convert(plain, Document)
    except msgspec.ValidationError as error:
        raise FlowError(
            [Problem(code="bad-override", message=f"after the overrides: {error}", path=("overrides",))]
        ) from None
    if freely:
        for id, patch in overrides.items():
            _refuse_secrets(changed, id, patch)
    return changed


def _as_data(patch: Mapping[str, Any]) -> dict[str, Any]:
    given = patch.get("with")
    if not isinstance(given, dict):
        return dict(patch)
    return {**patch, "with": {name: value if value is None else {"$literal": value} for name, value in given.items()}}


def _refuse_secrets(changed: Document, id: str, patch: Mapping[str, Any]) -> None:
    """Refuse to change what a step does that uses a secret: a person who may start a flow could have it sent anywhere.

    Raises:
        FlowError: it would.
    """
    step = changed.steps[id]
    touched = [name for name in ("use", "with", "undo") if name in patch]
    given = [step.with_, *([] if step.undo is None else [step.undo.with_])]
    references = {each for value in given for each in compile_value(value, []).references if each[0] == "vars"}
    secrets = [name for name, each in changed.vars.items() if each.secret]
    used = [name for name in secrets if any(each[1:2] in ((), (name,)) for each in references)]
    if touched and used:
        message = f"step {id} uses the secret {used[0]}, so a start cannot change its `{touched[0]}`"
        advice, path = "change the document, or the settings of the environment", ("overrides", id, touched[0])
        raise FlowError([Problem(code="secret", message=message, path=path, suggestion=advice)])


# -- What a start may change -------------------------------------------------------------------------------


def overridable_in(step: FlowStep) -> Sequence[str]:
    """The parts of a step that a start may change."""
    return POLICIES if step.overridable is None else step.overridable


def limits_of_starts(document: Document, overrides: Mapping[str, Any]) -> set[str]:
    """The steps that get a limit which no step of the document has. It is counted for the starts of this flow alone:
    limits are shared by their names, and a start would use up that of another workflow, or reset it."""
    own = [step.limit for step in document.steps.values()]
    patched = {id: patch["limit"] for id, patch in overrides.items() if isinstance(patch, dict) and "limit" in patch}
    return {id for id, limit in patched.items() if limit not in own}


def refuse_code(document: Document, overrides: Mapping[str, Any]) -> None:
    """Return if overrides change only what the document lets a start change.

    Raises:
        FlowInputError: they change more.
    """
    problems = [
        problem
        for id, patch in overrides.items()
        if id in document.steps and isinstance(patch, dict)
        for problem in _refused(id, document.steps[id], patch)
    ]
    if problems:
        raise FlowInputError(document.name, problems)


def _refused(id: str, step: FlowStep, patch: Mapping[str, Any]) -> list[Problem]:
    allowed = overridable_in(step)
    may = f"it may change {', '.join(allowed)}" if allowed else "its document lets a start change nothing of it"
    found: list[Problem] = []
    for field, value in patch.items():
        names = [_ARGUMENT + str(name) for name in value] if field == "with" and isinstance(value, dict) else [field]
        found += [
            _problem(id, field, f"a start may not change `{name}` of step {id}", may)
            for name in names
            if name not in allowed
        ]
        if field == "if" and not isinstance(value, bool | None):
            found.append(_problem(id, field, f"a start gives true or false for `if` of step {id}, no expression"))
    try:
        check_data(patch, f"the overrides of step {id}")
    except SecretError as error:
        found.append(_problem(id, "with", str(error)))
    return found


def _problem(id: str, field: str, message: str, advice: str = "") -> Problem:
    return Problem(code="bad-override", message=message, path=("overrides", id, field), suggestion=advice)


def schema_of_overrides(document: Document) -> dict[str, Any]:
    """The JSON Schema of the overrides that any start may give."""
    return {
        "type": ["object", "null"],
        "properties": {id: _schema_of_step(step) for id, step in document.steps.items()},
        "additionalProperties": False,
    }


def _schema_of_step(step: FlowStep) -> dict[str, Any]:
    allowed = overridable_in(step)
    own = [name for name in allowed if not name.startswith(_ARGUMENT)]
    properties: dict[str, Any] = {name: {"type": ["boolean", "null"]} if name == "if" else {} for name in own}
    given: dict[str, Any] = {name.removeprefix(_ARGUMENT): {} for name in allowed if name.startswith(_ARGUMENT)}
    if given:
        properties["with"] = {"type": "object", "properties": given, "additionalProperties": False}
    return {"type": "object", "properties": properties, "additionalProperties": False}
