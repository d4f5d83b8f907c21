"""Plain data with expressions in it.

A text may hold `${{ ... }}`. If that is all there is, the value is the expression's own; otherwise the values are put
into the text. `$${{` is the text `${{`. An object may have a meaning of its own: `$literal`, `$if` or `$coalesce`, and
the references that the program around this language knows (`ReferenceForms`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from outlive._cel.demand import NOTHING, Demand, all_of, demand_of, first_of, one_of, steps_in
from outlive._cel.errors import ExpressionError
from outlive._cel.expression import Expression, parse, plain
from outlive._cel.syntax import Name, Node
from outlive._cel.tokens import SOURCE_CHARACTERS_MAX, read_tokens
from outlive._cel.types import ANY, LIST, MAP, NULL, STRING, Type, join, type_of_value
from outlive._cel.values import (
    ExpressionLimitError,
    Frame,
    MissingError,
    json_of,
    refuse_length,
    shown,
    text_of,
)

DEPTH_MAX = 100
"""How deeply nested a value with expressions may be."""

# Only a text, a map or a comment can hold what looks like the end. Texts without escapes and braces are passed over.
_PLAIN_END = re.compile(r"""(?:[^'"{}/\\]++|'[^'{}\\\r\n]*+'|"[^"{}\\\r\n]*+")*+\}\}""")

# Up to where a URL says which server is meant; \0 stands for the value of an expression.
_AUTHORITY = re.compile(r"[^/?#\\\0]*://[^/?#\\]+[/?#]|\0[^/?#\\]*[/?#](?!/)")

Path = tuple[str | int, ...]
Scope = Mapping[str, Any]

_FORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "$literal": ((), ()),
    "$if": (("then",), ("else",)),
    "$coalesce": ((), ()),
}
"""The word of each form, and what must and what may stand beside it."""


@dataclass(frozen=True, slots=True)
class ReferenceForms:
    """Objects that mean a path, in forms that do not belong to this language. Each may have a `default` beside it."""

    beside: Mapping[str, tuple[str, ...]]
    """The word of each form, and the words that may stand beside it."""
    read: Callable[[str, Mapping[str, Any]], tuple[str, Node]]
    """The path that an object of this form means, as source and as tree; raises an `ExpressionError` if it means
    none."""


NO_REFERENCES = ReferenceForms({}, lambda form, given: (form, Name(0, form)))


@dataclass(frozen=True, slots=True)
class Template:
    """A value with expressions, parsed once."""

    expressions: tuple[tuple[Path, Expression], ...]
    """Each with its place in the value."""
    is_constant: bool
    """Whether it is the same for every scope."""
    references: frozenset[tuple[str, ...]]
    """The references of its expressions to a scope."""
    _part: _Part = field(repr=False)

    @property
    def demand(self) -> Demand:
        """Which steps it needs, as far as that is certain, and how to find out the rest."""
        return self._part.demand() if steps_in(self.references) else NOTHING

    def render(self, scope: Scope) -> Any:
        """The value for the data of a scope. What is constant in it is shared and must not be changed.

        Raises:
            ExpressionError: an expression has no value for this data.
        """
        try:
            return self._part.render(scope)
        except ExpressionError as error:
            raise plain(error) from None

    def check(self, types: Mapping[str, Type]) -> Type:
        """The type of the value.

        Raises:
            ExpressionError: the first mistake in its expressions.
        """
        return self._part.check(types)


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of a template: three functions, made once."""

    render: Callable[[Scope], Any]
    check: Callable[[Mapping[str, Type]], Type]
    demand: Callable[[], Demand]
    is_constant: bool = False
    value: Any = None
    """The value of a constant."""


def compile_value(
    value: Any,
    problems: list[tuple[Path, ExpressionError]] | None = None,
    *,
    references: ReferenceForms = NO_REFERENCES,
) -> Template:
    """Parse every expression in a value.

    With `problems` each mistake is added to that list with its place, and nothing is raised.

    Raises:
        ExpressionError: the first text or object that cannot be read.
    """
    compiler = _Compiler(problems, references)
    part = compiler.part(value, ())
    return compiler.template(part, is_constant=part.is_constant)


def references_of_address(url: str) -> frozenset[tuple[str, ...]]:
    """The references in a URL that decide which server it names, and not the path behind that.

    Raises:
        ExpressionError: it cannot be read.
    """
    seen, found = "", set[tuple[str, ...]]()
    for piece in _pieces(url):
        if isinstance(piece, str):
            seen += piece.lstrip() if not seen else piece
        elif _AUTHORITY.match(seen):
            break
        else:
            found |= piece.references
            seen += "\0"
    return frozenset(found)


def compile_cases(value: dict[str, Any], *, references: ReferenceForms = NO_REFERENCES) -> Template:
    """A template for the arguments of `switch`: only the case that `on` chooses is rendered, and needs steps.

    Raises:
        ExpressionError: the first text or object that cannot be read.
    """
    compiler = _Compiler(None, references)
    on = compiler.part(value.get("on"), ("on",))
    cases = {str(name): compiler.part(each, ("cases", name)) for name, each in value["cases"].items()}
    default = compiler.part(value["default"], ("default",)) if "default" in value else None
    names = dict.fromkeys(cases)

    def choose(scope: Scope) -> tuple[Any, str, _Part | None]:
        found = on.render(scope)
        wanted = case_of(found)
        return found, wanted, cases.get(wanted, default)

    def render(scope: Scope) -> Any:
        found, wanted, chosen = choose(scope)
        if chosen is None:
            return {"on": found, "cases": names}
        made = chosen.render(scope)
        return (
            {"on": found, "cases": {wanted: made}} if wanted in cases else {"on": found, "cases": {}, "default": made}
        )

    def demand() -> Demand:
        demands = {id(each): NOTHING if each is None else each.demand() for each in (*cases.values(), default)}
        return one_of(on.demand(), lambda scope: demands[id(choose(scope)[2])], demands.values())

    return compiler.template(_Part(render, lambda types: ANY, demand), is_constant=False)


def case_of(on: Any) -> str:
    """The name of the case that a value means: true and null are "true" and "null"."""
    return on if type(on) is str else msgspec.json.encode(on).decode()


def _constant(value: Any) -> _Part:
    return _Part(lambda scope: value, lambda types: type_of_value(value), _no_demand, True, value)


def _no_demand() -> Demand:
    return NOTHING


def _of_expression(expression: Expression) -> _Part:
    return _Part(expression.run, expression.check, lambda: demand_of(expression))


class _Compiler:
    """Walks over one value."""

    def __init__(self, problems: list[tuple[Path, ExpressionError]] | None, references: ReferenceForms) -> None:
        self._expressions: list[tuple[Path, Expression]] = []
        self._problems = problems
        self._references = references

    def template(self, part: _Part, *, is_constant: bool) -> Template:
        """The template of the value that was walked over."""
        found = tuple(self._expressions)
        references = frozenset(path for _, each in found for path in each.references)
        return Template(found, is_constant, references, part)

    def part(self, value: Any, path: Path) -> _Part:
        """The part for a value and everything in it."""
        try:
            if len(path) > DEPTH_MAX:
                raise ExpressionError(f"the value is nested more than {DEPTH_MAX} deep")
            if type(value) is str:
                return self._text(value, path) if "${{" in value else _constant(value)
            if type(value) is list:
                return _list([self.part(each, (*path, number)) for number, each in enumerate(value)])
            if type(value) is dict:
                return self._object(value, path)
            return _constant(value)
        except ExpressionError as error:
            if self._problems is None:
                raise
            self._problems.append((path, plain(error)))  # Without frames, which hold the list that it goes to.
            return _constant(None)

    def _text(self, text: str, path: Path) -> _Part:
        parts = list(_pieces(text))
        if all(type(each) is str for each in parts):
            return _constant("".join(map(str, parts)))
        sources = [each for each in parts if isinstance(each, Expression)]
        self._expressions += [(path, each) for each in sources]
        if len(sources) == 1 and not "".join(each for each in parts if isinstance(each, str)).strip():
            return _of_expression(sources[0])
        return _Part(
            _text_renderer(parts), _text_checker(sources), lambda: all_of([demand_of(each) for each in sources])
        )

    def _object(self, value: dict[Any, Any], path: Path) -> _Part:
        for key in value:
            if type(key) is str and "${{" in key:
                raise ExpressionError(f"the name of a field cannot be an expression: {key[:100]!r}")
        own, foreign = _FORMS, self._references.beside
        form = next((key for key in value if type(key) is str and (key in own or key in foreign)), None)
        if form is None:
            return _map({key: self.part(each, (*path, key)) for key, each in value.items()})
        _refuse_others(form, value, *(own[form] if form in own else ((), (*foreign[form], "default"))))
        given = value[form]
        if form == "$literal":
            return _constant(given)
        if form == "$if":
            condition, yes = self.part(given, (*path, "$if")), self.part(value["then"], (*path, "then"))
            return _if(condition, yes, self.part(value.get("else"), (*path, "else")))
        if form == "$coalesce":
            if type(given) is not list or not given:
                raise ExpressionError("$coalesce takes a list of values")
            return _coalesce([self.part(each, (*path, "$coalesce", number)) for number, each in enumerate(given)])
        text, node = self._references.read(form, value)
        expression = Expression(text, node)
        self._expressions.append((path, expression))
        if "default" in value:
            return _coalesce([_of_expression(expression), self.part(value["default"], (*path, "default"))])
        return _of_expression(expression)


def _refuse_others(form: str, value: dict[Any, Any], required: tuple[str, ...], optional: tuple[str, ...]) -> None:
    missing = [name for name in required if name not in value]
    unknown = [str(name) for name in value if name != form and name not in (*required, *optional)]
    if missing:
        raise ExpressionError(f"{form} needs {missing[0]!r} beside it")
    if unknown:
        raise ExpressionError(
            f"{form} cannot have {unknown[0][:100]!r} beside it",
            suggestion="put data that looks like this into $literal",
        )


def _pieces(text: str) -> Iterator[str | Expression]:
    """Text and expressions, in their order."""
    at = 0
    while (start := text.find("${{", at)) >= 0:
        if start > at and text[start - 1] == "$":
            yield f"{text[at : start - 1]}${{{{"
            at = start + 3
            continue
        if start > at:
            yield text[at:start]
        at = _end(text, start + 3)
        yield parse(text[start + 3 : at - 2].strip())
    if at < len(text):
        yield text[at:]


def _end(text: str, start: int) -> int:
    """Where the text goes on behind an expression."""
    plain_end = _PLAIN_END.match(text, start)
    if plain_end is not None and plain_end.end() - start - 2 <= SOURCE_CHARACTERS_MAX:
        return plain_end.end()
    try:
        return read_tokens(text, start, closed=True)[1]
    except ExpressionError as error:
        raise error.within(text) from None


def _text_renderer(parts: list[str | Expression]) -> Callable[[Scope], str]:
    def render(scope: Scope) -> str:
        made = [each if isinstance(each, str) else _as_text(each, each.run(scope)) for each in parts]
        refuse_length(sum(map(len, made)))
        return "".join(made)

    return render


def _as_text(expression: Expression, value: Any) -> str:
    try:
        if type(value) is dict or type(value) is list:
            return json_of(Frame({}, 0), value)
        if value is None:
            raise ExpressionError("a text cannot have null in it", 0, "write coalesce(x, '')")
        return text_of(value)
    except ExpressionError as error:
        raise error.within(expression.text) from None


def _text_checker(sources: list[Expression]) -> Callable[[Mapping[str, Type]], Type]:
    def check(types: Mapping[str, Type]) -> Type:
        for each in sources:
            if each.check(types) == NULL:
                raise ExpressionError("a text cannot have null in it", 0, "write coalesce(x, '')", each.text)
        return STRING

    return check


def _list(parts: list[_Part]) -> _Part:
    if all(each.is_constant for each in parts):
        return _constant([each.value for each in parts])
    renders = [each.render for each in parts]

    def check(types: Mapping[str, Type]) -> Type:
        of = NULL
        for each in parts:
            of = join(of, each.check(types))
        return LIST(ANY if of == NULL else of)

    return _Part(lambda scope: [render(scope) for render in renders], check, lambda: _together(parts))


def _map(parts: dict[str, _Part]) -> _Part:
    if all(each.is_constant for each in parts.values()):
        return _constant({key: each.value for key, each in parts.items()})
    renders = [(key, each.render) for key, each in parts.items()]
    return _Part(
        lambda scope: {key: render(scope) for key, render in renders},
        lambda types: MAP({key: each.check(types) for key, each in parts.items()}),
        lambda: _together(parts.values()),
    )


def _together(parts: Iterable[_Part]) -> Demand:
    return all_of([each.demand() for each in parts if not each.is_constant])


def _if(condition: _Part, yes: _Part, no: _Part) -> _Part:
    def choose(scope: Scope) -> _Part:
        value = condition.render(scope)
        if value is not None and type(value) is not bool:
            raise ExpressionError(f"the condition of $if is true, false or null, and this is {shown(value)}")
        return yes if value else no

    def demand() -> Demand:
        demands = {id(yes): yes.demand(), id(no): no.demand()}
        return one_of(condition.demand(), lambda scope: demands[id(choose(scope))], demands.values())

    def check(types: Mapping[str, Type]) -> Type:
        found = condition.check(types)
        if found.kind not in ("any", "bool", "null"):
            raise ExpressionError(f"the condition of $if is true or false, and this is a {found}")
        return join(yes.check(types), no.check(types))

    return _Part(lambda scope: choose(scope).render(scope), check, demand)


def _coalesce(parts: list[_Part]) -> _Part:
    def render(scope: Scope) -> Any:
        for each in parts:
            try:
                value = each.render(scope)
            except ExpressionLimitError:
                raise
            except MissingError:
                continue
            if value is not None:
                return value
        return None

    def check(types: Mapping[str, Type]) -> Type:
        joined = NULL
        for each in parts:
            joined = join(joined, each.check(types))
        return joined

    return _Part(render, check, lambda: first_of([(each.demand(), each.render) for each in parts]))
