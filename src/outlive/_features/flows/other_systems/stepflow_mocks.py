"""Answers of Stepflow's mock plugins, which stand in its configuration: here they are `mocks` of tests.

A component belongs to the first plugin on the route that its path begins with; the rest of the path is its name there.
A mock plugin lists what a component answers to which input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from outlive._features.flows.document.reading import BYTES_MAX
from outlive._features.flows.other_systems.imported import Imported, Names, note
from outlive._features.flows.other_systems.stepflow import steps_of
from outlive.errors.document import FlowError, Problem

if TYPE_CHECKING:
    import yaml


def add_mocks(imported: Imported, data: Mapping[str, Any], config: str | bytes) -> None:
    """Add the answers of mock plugins to each test of a flow that was made of `data`.

    Raises:
        FlowError: the configuration is not YAML.
    """
    mocks: dict[str, Any] = {}
    names = Names()
    found = _mocked_components(_read(config))
    for step, path in steps_of(data, ()):
        component = str(step.get("component")) if isinstance(step, dict) else ""
        if component in found:
            mocks[names[step["id"]]] = {"when": found[component]}
        elif isinstance(step, dict) and any(component.startswith(f"{each.rpartition('/')[0]}/") for each in found):
            note(imported, f"the mock plugin has no component {component}", (*path, "component"))
    for case in imported.data.get("tests", []):
        if mocks:
            case["mocks"] = mocks


def _mocked_components(config: Any) -> dict[str, list[dict[str, Any]]]:
    """The answers of each component of a mock plugin, by the path that flows call it by."""
    given = config if isinstance(config, dict) else {}
    plugins, routes = given.get("plugins"), given.get("routes")
    found: dict[str, list[dict[str, Any]]] = {}
    for route, rules in (routes if isinstance(routes, dict) else {}).items():
        for rule in rules if isinstance(rules, list) else []:
            plugin = (plugins or {}).get(rule.get("plugin")) if isinstance(rule, dict) else None
            if isinstance(plugin, dict) and plugin.get("type") == "mock":
                prefix = str(route).partition("/{*")[0].rstrip("/")
                for name, component in (plugin.get("components") or {}).items():
                    answers = list(_answers(component))
                    found.setdefault(f"{prefix}/{str(name).lstrip('/')}", answers)
    return found


def _answers(component: Any) -> Iterator[dict[str, Any]]:
    behaviors = component.get("behaviors") if isinstance(component, dict) else None
    for given, answer in behaviors if isinstance(behaviors, list) else []:
        if isinstance(answer, dict) and answer.get("outcome") == "success":
            yield {"with": given, "result": answer.get("result")}
        elif isinstance(answer, dict):
            error = answer.get("error")
            said = error if isinstance(error, dict) else {}
            own = {"type": str(said.get("code", "Exception")), "message": str(said.get("message", ""))}
            yield {"with": given, "error": own}


def _read(text: str | bytes) -> Any:
    """A configuration as plain data; a map with maps for keys, which JSON does not have, as a list of pairs.

    Raises:
        FlowError: it is not YAML.
    """
    import yaml

    if len(text) > BYTES_MAX:
        message = f"the configuration has {len(text):,} bytes, and {BYTES_MAX:,} are the most"
        raise FlowError([Problem(code="too-large", message=message, line=1, column=1)])
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        message = f"the configuration is not YAML: {' '.join(str(error).split())}"
        raise FlowError([Problem(code="syntax", message=message, line=1, column=1)]) from None
    return None if node is None else _plain(node, yaml.SafeLoader(""))


def _plain(node: yaml.Node, loader: yaml.SafeLoader) -> Any:
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return [_plain(each, loader) for each in node.value]
    if isinstance(node, yaml.MappingNode):
        pairs = [(_plain(key, loader), _plain(value, loader)) for key, value in node.value]
        return pairs if any(isinstance(key, dict | list) for key, _ in pairs) else dict(pairs)
    return loader.construct_object(node)
