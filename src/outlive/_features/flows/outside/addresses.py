"""Where the secrets of a document go: the addresses of the steps that send them, and who decides these.

A request that has a secret takes it to what its `url` or `endpoint` names; of a program, a tool or a step of the
user's own only its author knows which argument says that. A variable that decides it, directly, as an item or by the
result of another step, would let every start say where the secret goes. So such a variable is *fixed*, unless the
document says otherwise. The input and the id of a run cannot be fixed: a request that goes where these say takes only
secrets that the settings bind to servers.
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
CARRYING = ("noop", "switch", "map", "iterate")
"""The steps whose results are what they were given."""
GIVEN = ("input", "run")
"""The parts of a scope that a start, an event or a webhook says."""

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


def secrets_by_start(document: Document) -> dict[str, str]:
    """The secrets that a request takes to a server which the start of a run names, each with the step that does."""
    secrets = {name for name, each in document.vars.items() if each.secret}
    sent = [
        (id, named, _address(use, given))
        for id in (document.steps if secrets else ())
        for use, given in _calls_of(document, id)
        if use in REQUESTS and (named := _named(_references(given), secrets))
    ]
    carrying = _steps_by_start(document) if sent else frozenset()
    found: dict[str, str] = {}
    for id, named, address in sent:
        if any(_is_by_start(document, id, each, carrying) for each in address):
            found |= {name: id for name in named if name not in found}
    return found


def _is_by_start(document: Document, id: str, reference: Reference, carrying: frozenset[str]) -> bool:
    """Whether a reference in the address of a step has what a start says; `carrying`: the steps whose results have."""
    if _is_outer(reference, document):
        if reference[0] == "steps":
            return bool(carrying) if len(reference) < 2 else reference[1] in carrying
        return reference[0] in GIVEN
    if reference[0] == "result":
        return id in carrying
    # An item is one of what the step was given; an inner step may have got all of that.
    given = document.steps[id].with_
    if reference[0] == "item" and isinstance(given, Mapping):
        given = given.get("items", given)
    outer = (each for each in _references(given) if _is_outer(each, document))
    return any(_is_by_start(document, id, each, carrying) for each in outer)


def _steps_by_start(document: Document) -> frozenset[str]:
    """The steps whose results may be what a start says, as it is."""
    followers: dict[str, list[str]] = {id: [] for id in document.steps}
    of_all, left = list[str](), list[str]()
    for id in document.steps:
        for reference in _carried(document, id):
            if reference[0] in GIVEN:
                left.append(id)
            elif reference == ("steps",):
                of_all.append(id)
            elif reference[0] == "steps" and reference[1] in followers:
                followers[reference[1]].append(id)
    if left:
        left += of_all
    seen = set[str]()
    while left:
        id = left.pop()
        if id not in seen:
            seen.add(id)
            left += followers[id]
    return frozenset(seen)


def _carried(document: Document, id: str) -> frozenset[Reference]:
    """The references whose values the result of a step may be as they are."""
    step = document.steps[id]
    found = _references(step.with_) if step.use in CARRYING else frozenset()
    if not isinstance(step.on_error, str) and step.on_error.use_default is not UNSET:
        found |= _references(step.on_error.use_default)
    return found


def deciding_addresses(document: Document, of: Collection[str] | None = None) -> frozenset[Reference]:
    """The references that decide where secrets go: to variables, to the input and to the rest of a scope. `of`: the
    steps that send them, by what they use; None for all."""
    secrets = {name for name, each in document.vars.items() if each.secret}
    if not secrets:
        return frozenset()
    found: set[Reference] = set()
    for id in document.steps:
        calls = [(use, given) for use, given in _calls_of(document, id) if of is None or use in of]
        own = {each for use, given in calls if _named(_references(given), secrets) for each in _address(use, given)}
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


def _calls_of(document: Document, id: str) -> list[tuple[str, Any]]:
    """All that a step calls, with what it gives: itself, what is written in it, and its undo."""
    step = document.steps[id]
    calls = [(step.use, step.with_), *_calls(step.with_)]
    if step.undo is not None:
        calls += [(step.undo.use, step.undo.with_), *_calls(step.undo.with_)]
    return calls


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


def _named(references: frozenset[Reference], secrets: set[str]) -> set[str]:
    """The secrets that are among these references."""
    if ("vars",) in references:
        return secrets
    return {each[1] for each in references if each[0] == "vars"} & secrets
