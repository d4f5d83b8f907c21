"""Where the secrets of a document go: the addresses of the steps that send them, and who decides these.

A request that has a secret takes it to what its `url` or `endpoint` names; of a program, a tool or a step of the
user's own only its author knows which argument says that. A variable that decides it, directly, as an item or by the
result of another step, would let every start say where the secret goes. So such a variable is *fixed*, unless the
document says otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from msgspec import UNSET

from outlive._cel import ExpressionError, references_of_address
from outlive._features.flows.built_in import NAMES
from outlive._features.flows.document.model import Document
from outlive._features.flows.document.references import compile_value

URL, ENDPOINT = "url", "endpoint"
REQUESTS = ("http", "llm")
PROGRAMS = ("shell", "docker", "mcp")

Reference = tuple[str, ...]


def fixed_vars(document: Document) -> frozenset[str]:
    """The variables that no start may give."""
    open_ones = {name: each for name, each in document.vars.items() if not each.secret and each.fixed is not False}
    fixed = {name for name, each in open_ones.items() if each.fixed}
    if len(fixed) < len(open_ones):
        deciding = deciding_addresses(document)
        fixed |= open_ones.keys() if ("vars",) in deciding else {each[1] for each in deciding if each[0] == "vars"}
    return frozenset(fixed & open_ones.keys())


def deciding_steps(document: Document) -> frozenset[str]:
    """The steps whose results decide to which server a request takes a secret."""
    deciding = deciding_addresses(document, REQUESTS)
    if ("steps",) in deciding:
        return frozenset(document.steps)
    return frozenset(each[1] for each in deciding if each[0] == "steps")


def deciding_addresses(document: Document, of: Collection[str] | None = None) -> frozenset[Reference]:
    """The references that decide where secrets go: to variables, to the input and to the rest of a scope. `of`: the
    steps that send them, by what they use; None for all."""
    secrets = {name for name, each in document.vars.items() if each.secret}
    if not secrets:
        return frozenset()
    found: set[Reference] = set()
    for id, step in document.steps.items():
        calls = [(step.use, step.with_), *_calls(step.with_)]
        if step.undo is not None:
            calls += [(step.undo.use, step.undo.with_), *_calls(step.undo.with_)]
        calls = [(use, given) for use, given in calls if of is None or use in of]
        own = {each for use, given in calls if _names(_references(given), secrets) for each in _address(use, given)}
        found |= own
        if any(not _is_outer(each, document) for each in own):
            # An item, or the result of a step inside: what this step is given, and is undone with, decides that.
            found |= _given_to(document, id)
    left = [each[1] for each in found if each[0] == "steps" and len(each) > 1]
    if ("steps",) in found:
        left += document.steps
    seen: set[str] = set()
    while left:
        id = left.pop()
        if id in document.steps and id not in seen:
            seen.add(id)
            own = set(_given_to(document, id))
            found |= own
            left += [each[1] for each in own if each[0] == "steps" and len(each) > 1]
    return frozenset(found)


def _is_outer(reference: Reference, document: Document) -> bool:
    if reference[0] == "steps":
        return len(reference) < 2 or reference[1] in document.steps
    return reference[0] in ("vars", "input", "run")


def _given_to(document: Document, id: str) -> frozenset[Reference]:
    """The references that decide the result of a step, as far as its document says."""
    step = document.steps[id]
    found = _references(step.with_)
    if not isinstance(step.on_error, str) and step.on_error.use_default is not UNSET:
        found |= _references(step.on_error.use_default)
    return found


def _calls(given: Any) -> Iterator[tuple[str, Any]]:
    """The steps that are written in what a step is given, as in a `map`: what they use, and what they are given."""
    if isinstance(given, Mapping):
        if isinstance(given.get("use"), str):
            yield given["use"], given.get("with")
    elif not isinstance(given, list):
        return
    for each in given.values() if isinstance(given, Mapping) else given:
        yield from _calls(each)


def _address(use: str, given: Any) -> frozenset[Reference]:
    """The references in the arguments of a step that say where they go: of a request those in its server; of a program
    or a step of the user's own all of them."""
    if use in NAMES and use not in PROGRAMS:
        if use not in REQUESTS or not isinstance(given, Mapping):
            return _references(given) if use in REQUESTS else frozenset()
        return _before_path(given.get(URL)) | _references(given.get(ENDPOINT))
    return _references(given)


def _before_path(url: Any) -> frozenset[Reference]:
    if not isinstance(url, str):
        return _references(url)
    try:
        return references_of_address(url)
    except ExpressionError:
        return frozenset()  # It is reported where all expressions are.


def _references(value: Any) -> frozenset[Reference]:
    return compile_value(value, []).references


def _names(references: frozenset[Reference], secrets: set[str]) -> bool:
    return any(each[0] == "vars" and (len(each) == 1 or each[1] in secrets) for each in references)
