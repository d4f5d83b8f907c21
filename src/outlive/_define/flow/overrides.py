"""Changes of the steps of a flow for one run: JSON merge patches (RFC 7396), by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from outlive._define.flow.document import Document
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
        return msgspec.convert(plain, Document)
    except msgspec.ValidationError as error:
        raise FlowError(
            [Problem(code="bad-override", message=f"after the overrides: {error}", path=("overrides",))]
        ) from None
