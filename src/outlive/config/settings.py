"""The settings of one process: what was given, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from outlive._kernel.model import Limits, Recovery, Retry
from outlive._kernel.model.retention import Keep, KeepAudit, read_audit_key
from outlive._kernel.model.worker import WorkerOptions
from outlive.config.setting import BY_NAME

KEEP = "retention"
WORKFLOWS = ("retention", "workflows")

_OPTIONS = {
    "store": "url",
    "namespace": "namespace",
    "poll_seconds": "poll_seconds",
    "store_seconds": "store_seconds",
    "redact": "redact",
    "record_arguments": "record_arguments",
}
"""Settings in no table, and the option of `Engine` that each is."""
_CLASSES: dict[str, type] = {"limits": Limits, "recovery": Recovery, "retry": Retry}
"""Tables that are one option of `Engine`."""


class Given(NamedTuple):
    """A value, and the place that gives it."""

    value: Any
    place: str
    """A file with its line, a variable, or a flag."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings that were given; the rest are defaults."""

    given: Mapping[str, Given] = field(default_factory=dict)
    """By the name of the setting, checked."""
    flows: Mapping[str, Any] = field(default_factory=dict)
    """The table `[flows]`, for the room of flows."""
    file: str = ""
    """The file that was read, for people; empty if there was none."""

    def __getitem__(self, name: str) -> Any:
        """The value of a setting: what was given, or its default."""
        return self.given[name].value if name in self.given else BY_NAME[name].default

    def place(self, name: str) -> str:
        """Where the value of a setting comes from."""
        return self.given[name].place if name in self.given else "default"

    def engine_options(self, **worker: Any) -> dict[str, Any]:
        """The given settings as options of `Engine`.

        Args:
            worker: options of its worker that count unless they were given.

        Raises:
            ConfigurationError: two values do not go together, or the file with a key cannot be read.
        """
        options: dict[str, Any] = {
            option: self.given[name].value for name, option in _OPTIONS.items() if name in self.given
        }
        if worker := worker | self._table("worker"):
            options["worker"] = WorkerOptions(**worker)
        for table, owner in _CLASSES.items():
            if values := self._table(table):
                options[table] = owner(**values)
        if keeps := self._keeps():
            options["retention"] = keeps
        return options

    def _table(self, table: str) -> dict[str, Any]:
        beginning = f"{table}."
        return {
            name.removeprefix(beginning): given.value
            for name, given in self.given.items()
            if name.startswith(beginning) and "." not in name.removeprefix(beginning)
        }

    def _keeps(self) -> list[Keep | KeepAudit]:
        values = self._table(KEEP)
        keeps: list[Keep | KeepAudit] = []
        audit, key_file = values.pop("audit", None), values.pop("audit_key_file", None)
        if audit is not None or key_file is not None:
            keeps.append(KeepAudit(audit, None if key_file is None else read_audit_key(key_file)))
        if values:
            keeps.append(Keep(**values))
        beginning = f"{'.'.join(WORKFLOWS)}."
        named = [name.removeprefix(beginning).rpartition(".")[0] for name in self.given if name.startswith(beginning)]
        return [*keeps, *(Keep(name, **self._table(beginning + name)) for name in dict.fromkeys(named))]
