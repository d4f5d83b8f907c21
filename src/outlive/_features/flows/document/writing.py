"""Documents as YAML, for people: what is written is read as the same data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from outlive._features.flows.document.reading import is_number


def as_yaml(data: Mapping[str, Any]) -> str:
    """A document as YAML that we read as the same data."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes text of several lines as a block."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    Dumper.add_representer(str, _text_node)
    return yaml.dump(data, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)


def _text_node(dumper: Any, text: str) -> Any:
    # PyYAML writes by the rules of YAML 1.1, in which `0o17` and `1e3` are text.
    style = "'" if is_number(text) else "|" if "\n" in text.strip() else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
