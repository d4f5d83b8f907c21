"""Where the secrets of a document go: the addresses of the steps that send them, and who decides these.

A step that has a secret sends it to what its `url` names, or to a server, an endpoint, a program or an image by its
name. A variable that decides that, directly or by the result of another step, would let every start say where the
secret goes. So such a variable is *fixed*, unless the document says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from outlive._define.flow.document import Document
from outlive._define.flow.expression import compile_value, references_of_address
from outlive.errors import ExpressionError

URL = "url"
NAMED = ("server", "endpoint", "command", "image")
"""Arguments that name where a step goes."""

Reference = tuple[str, ...]


def fixed_vars(document: Document) -> frozenset[str]:
    """The variables that no start may give."""
    open_ones = {name: each for name, each in document.vars.items() if not each.secret and each.fixed is not False}
    fixed = {name for name, each in open_ones.items() if each.fixed}
    if len(fixed) < len(open_ones):
        deciding = deciding_addresses(document)
        fixed |= open_ones.keys() if ("vars",) in deciding else {each[1] for each in deciding if each[0] == "vars"}
    return frozenset(fixed & open_ones.keys())


def deciding_addresses(document: Document) -> frozenset[Reference]:
    """What decides where secrets go: of the variables, the input and the rest of a scope."""
    secrets = {name for name, each in document.vars.items() if each.secret}
    if not secrets:
        return frozenset()
    found: set[Reference] = set()
    for step in document.steps.values():
        calls = [*_calls(step.use, step.with_)]
        if step.undo is not None:
            calls += _calls(step.undo.use, step.undo.with_)
        for given in calls:
            if _names(_references(given), secrets):
                found |= _address(given)
    left = [each[1] for each in found if each[0] == "steps" and len(each) > 1]
    seen: set[str] = set()
    while left:
        id = left.pop()
        if id in document.steps and id not in seen:
            seen.add(id)
            own = _references(document.steps[id].with_)
            found |= own
            left += [each[1] for each in own if each[0] == "steps" and len(each) > 1]
    return frozenset(found)


def _calls(use: Any, given: Any) -> Iterator[Mapping[str, Any]]:
    """What a step is given, and what the steps are given that are written in it, as in a `map`."""
    if isinstance(given, Mapping):
        if isinstance(use, str):
            yield given
        if isinstance(given.get("use"), str):
            yield from _calls(given["use"], given.get("with"))
        do = given.get("do")
        inner = do.get("steps") if isinstance(do, Mapping) else None
        for step in inner.values() if isinstance(inner, Mapping) else ():
            if isinstance(step, Mapping):
                yield from _calls(step.get("use"), step.get("with"))


def _address(given: Mapping[str, Any]) -> frozenset[Reference]:
    found: frozenset[Reference] = frozenset()
    if URL in given:
        found |= _before_path(given[URL])
    for name in NAMED:
        if name in given:
            found |= _references(given[name])
    return found


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
