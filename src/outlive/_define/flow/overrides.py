"""Changes of the steps of a flow for one run: JSON merge patches (RFC 7396), by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from outlive._define.flow.document import Document
from outlive._define.flow.expression import compile_value
from outlive._define.flow.problems import FlowError, Problem, did_you_mean


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


def overridden(document: Document, overrides: Mapping[str, Any]) -> Document:
    """The document with changed steps.

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
            message = f"what changes step {id} is no object"
            raise FlowError([Problem(code="bad-override", message=message, path=path)])
        plain["steps"][id] = merge_patch(plain["steps"][id], patch)
    try:
        changed = msgspec.convert(plain, Document)
    except msgspec.ValidationError as error:
        raise FlowError(
            [Problem(code="bad-override", message=f"after the overrides: {error}", path=("overrides",))]
        ) from None
    for id, patch in overrides.items():
        _refuse_secrets(changed, id, patch)
    return changed


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
