"""The result of an import of another system's document, and the parts that all imports share."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from outlive._features.flows.document.writing import as_yaml
from outlive.errors.document import Path, Problem

_MARK = "${{"


@dataclass(slots=True)
class Imported:
    """A document that was made of another system's."""

    data: dict[str, Any]
    """The flow, as plain data."""
    problems: list[Problem] = field(default_factory=list)
    """The parts that could not be carried over, or need a person: the flow is not complete without them."""
    inner: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Flows that stood inside the document and are called by name, as plain data by that name: documents of their own
    here."""

    def yaml(self) -> str:
        """The flow, as YAML."""
        return as_yaml(self.data)


def note(imported: Imported, message: str, path: Path, suggestion: str = "") -> None:
    """Remember something that a person has to do."""
    found = Problem(code="not-imported", message=message, path=path, suggestion=suggestion, is_warning=True)
    imported.problems.append(found)


def name_of(text: Any, otherwise: str) -> str:
    """A name that a flow can have, made of a title."""
    plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", str(text or "")).strip("_.-").lower()
    return plain if re.match(r"[a-z_]", plain) else f"{otherwise}_{plain}".rstrip("_")


class Names:
    """Names of steps in expressions: what another system allows in them and we do not becomes `_`."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def __getitem__(self, given: Any) -> str:
        text = str(given)
        if text not in self._names:
            plain = re.sub(r"[^A-Za-z0-9_]+", "_", text)
            plain = plain if re.match(r"[A-Za-z_]", plain) else f"step_{plain}"
            while plain in self._names.values():
                plain += "_"
            self._names[text] = plain
        return self._names[text]

    def __contains__(self, given: object) -> bool:
        return str(given) in self._names


def literal(value: Any) -> Any:
    """A value of another system that stands for itself here too."""
    if isinstance(value, str):
        return value.replace(_MARK, f"${_MARK}")
    if isinstance(value, list):
        return [literal(each) for each in value]
    if isinstance(value, dict):
        if any(isinstance(key, str) and (key.startswith("$") or _MARK in key) for key in value):
            return {"$literal": value}
        return {key: literal(each) for key, each in value.items()}
    return value
