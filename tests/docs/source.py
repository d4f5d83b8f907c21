"""What the source of the package says of its public names: signatures, fields and docstrings, as they were written.

Signatures are read from the source and not from the objects, so that they are the same on every Python, and have the
annotations that people wrote. What an object knows better is asked of the object: values of defaults that are names,
and which class a member comes from.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, is_typeddict

DECORATOR = "Callable[[F], F]"
"""What a function returns that is written above another one."""
TEXTS_MAX = 6
"""A type with more texts than these is shown by its name."""
LINE_MAX = 100
"""A longer signature has a line for each parameter."""
_PLAIN = (bool, int, float, str, type(None), timedelta)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Field:
    """An attribute of a class, as people see it."""

    name: str
    type: str
    default: str
    """As Python; empty if there is none."""
    text: str
    """What is said of it, in one paragraph."""


@dataclass(frozen=True)
class Said:
    """A docstring, in its parts."""

    prose: str
    """What it says before its sections; code in it is indented."""
    arguments: list[tuple[str, str]]
    """Names and what is said of them."""
    returns: str
    raises: list[tuple[list[str], str]]
    """Names of errors, and when they come; empty if that is said of the error itself."""

    @property
    def promise(self) -> str:
        """The first paragraph."""
        return " ".join(self.prose.split("\n\n")[0].split())


# -- Docstrings --------------------------------------------------------------------------------------------------

_SECTIONS = re.compile(r"^(Args|Returns|Raises):$", re.MULTILINE)
_ITEM = re.compile(r"^((?:\*\*)?\w+(?:, \w+)*): ", re.MULTILINE)
_ERROR = r"(?:[A-Z]\w*Error|RunDropped|Problem)"
_ERRORS = re.compile(rf"(?:^|(?<=\. ))({_ERROR}(?:, {_ERROR})*)(?::(?= )|\.(?= |$))")


def said_of(text: str) -> Said:
    """The parts of a docstring."""
    prose, *rest = _SECTIONS.split(inspect.cleandoc(text))
    sections = {name: textwrap.dedent(body.strip("\n")) for name, body in zip(rest[::2], rest[1::2], strict=True)}
    return Said(
        prose.strip(),
        list(_arguments_in(sections.get("Args", ""))),
        " ".join(sections.get("Returns", "").split()),
        list(_errors_in(sections.get("Raises", ""))),
    )


def _arguments_in(text: str) -> Iterator[tuple[str, str]]:
    for item, following in pairwise([*_ITEM.finditer(text), None]):
        assert item is not None
        yield item[1], " ".join(text[item.end() : following.start() if following else None].split())


def _errors_in(text: str) -> Iterator[tuple[list[str], str]]:
    one_line = " ".join(text.split())
    found = list(_ERRORS.finditer(one_line))
    assert not one_line or (found and found[0].start() == 0), f"a section Raises names no error first: {one_line!r}"
    for item, following in pairwise([*found, None]):
        assert item is not None
        yield item[1].split(", "), one_line[item.end() : following.start() if following else None].strip()


# -- Finding the source of a thing -------------------------------------------------------------------------------


@cache
def _tree(path: str) -> ast.Module:
    return ast.parse(Path(path).read_text("utf-8"))


@cache
def _nodes(path: str) -> dict[str, list[ast.stmt]]:
    """Functions and classes of a file by their qualified names; overloads have one name."""
    found: dict[str, list[ast.stmt]] = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.If):
                walk(node.body, prefix)
                walk(node.orelse, prefix)
            elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                found.setdefault(f"{prefix}{node.name}", []).append(node)
                if isinstance(node, ast.ClassDef):
                    walk(node.body, f"{prefix}{node.name}.")

    walk(_tree(path).body, "")
    return found


def _home(it: Any) -> tuple[ModuleType, str]:
    """The module of a thing, and its file: a package says of its names that they are its own."""
    module = sys.modules[it.__module__]
    assert module.__file__ is not None
    files = [module.__file__, *map(str, sorted(Path(module.__file__).parent.glob("*.py")))]
    return module, next(path for path in files if it.__qualname__ in _nodes(path))


def function_node(it: Any) -> Function:
    """The definition of a function; of one with overloads the last, which takes whatever they take."""
    _, path = _home(it)
    return [node for node in _nodes(path)[it.__qualname__] if isinstance(node, Function)][-1]


def said_below(module: ModuleType, name: str) -> str:
    """The string below a name of a module."""
    assert module.__file__ is not None
    for node, following in pairwise([*_tree(module.__file__).body, None]):
        match node, following:
            case ast.Assign(targets=[ast.Name(id=found)]), ast.Expr(value=ast.Constant(value=str(text))):
                if found == name:
                    return inspect.cleandoc(text)
            case _:
                pass
    raise LookupError(name)


def class_node(it: type) -> ast.ClassDef:
    """The definition of a class."""
    _, path = _home(it)
    (node, *_) = _nodes(path)[it.__qualname__]
    assert isinstance(node, ast.ClassDef)
    return node


def line_of(it: type) -> int:
    """Where a class begins in its file."""
    return class_node(it).lineno


def ours(it: type) -> list[type]:
    """A class and its base classes, as far as they are in its package; the class itself comes last."""
    package = it.__module__.partition(".")[0]
    return [each for each in reversed(it.__mro__) if each.__module__.partition(".")[0] == package]


# -- Types and defaults as people read them ----------------------------------------------------------------------


class _Short(ast.NodeTransformer):
    """Names without the modules that they come from; a name of some texts is those texts."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self._names.get(node.id)
        if get_origin(value) is not Literal or len(get_args(value)) > TEXTS_MAX:
            return node
        return ast.parse(f"Literal[{', '.join(map(repr, get_args(value)))}]", mode="eval").body

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id.islower():
            return ast.Name(node.attr)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if isinstance(node.value, str) and re.fullmatch(r"[A-Z][\w\[\], .|]*", node.value):
            return ast.Name(node.value)
        return node


def type_shown(node: ast.expr | None, names: dict[str, Any]) -> str:
    """An annotation of a module with these names, as people read it."""
    if node is None:
        return ""
    return _quoted(ast.unparse(_Short(names).visit(deepcopy(node))))


def _quoted(code: str) -> str:
    """Code with the quotes of our style."""
    return re.sub(r"'([^'\"\\]*)'", r'"\1"', code)


def _value_shown(node: ast.expr, names: dict[str, Any]) -> str:
    if isinstance(node, ast.Name | ast.Attribute):
        value = _looked_up(node, names)
        if type(value) in _PLAIN:
            return _span_shown(value) if isinstance(value, timedelta) else _quoted(repr(value))
        return ast.unparse(node).rpartition(".")[2]
    return _quoted(ast.unparse(node))


def _looked_up(node: ast.expr, names: dict[str, Any]) -> Any:
    if isinstance(node, ast.Attribute):
        return getattr(_looked_up(node.value, names), node.attr, ...)
    return names.get(node.id, ...) if isinstance(node, ast.Name) else ...


def _span_shown(span: timedelta) -> str:
    parts = {"days": span.days, "seconds": span.seconds}
    return f"timedelta({', '.join(f'{name}={value}' for name, value in parts.items() if value) or '0'})"


# -- Signatures --------------------------------------------------------------------------------------------------


def parameters_of(node: Function, module: ModuleType, *, is_method: bool) -> list[str]:
    """The parameters of a function for programs, each as Python; those of a `TypedDict` that it takes stand for it."""
    names, args = vars(module), node.args
    shown: list[str] = []
    positional = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
    defaults += args.defaults
    for at, (arg, default) in enumerate(zip(positional, defaults, strict=True)):
        if at == 0 and is_method and arg.arg in ("self", "cls"):
            continue
        shown.append(_parameter(arg, default, names))
        if args.posonlyargs and arg is args.posonlyargs[-1]:
            shown.append("/")
    if args.vararg is not None:
        shown.append("*" + _parameter(args.vararg, None, names))
    given = zip(args.kwonlyargs, args.kw_defaults, strict=True)
    keyword = [_parameter(arg, default, names) for arg, default in given if not arg.arg.startswith("_")]
    keyword += _gathered(args.kwarg, names)
    if keyword and args.vararg is None and not keyword[0].startswith("**"):
        shown.append("*")
    return shown + keyword


def _gathered(arg: ast.arg | None, names: dict[str, Any]) -> list[str]:
    """What stands for `**name`: the fields of its `TypedDict`, nothing if it takes nothing."""
    if arg is None or (hint := type_shown(arg.annotation, names)) == "Never":
        return []
    kind = re.fullmatch(r"Unpack\[(\w+)\]", hint)
    if kind is None or not is_typeddict(given := names.get(kind[1])):
        return ["**" + _parameter(arg, None, names)]
    return [f"{name}: {shown} = ..." for name, shown in _fields_of_dict(given)]


def _fields_of_dict(given: Any) -> Iterator[tuple[str, str]]:
    """The fields of a `TypedDict`, inherited fields included."""
    names, definition = vars(_home(given)[0]), class_node(given)
    for base in definition.bases:
        if is_typeddict(kind := _looked_up(base, names)):
            yield from _fields_of_dict(kind)
    for node in definition.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            yield node.target.id, type_shown(node.annotation, names)


def _parameter(arg: ast.arg, default: ast.expr | None, names: dict[str, Any]) -> str:
    shown = f"{arg.arg}: {type_shown(arg.annotation, names)}" if arg.annotation is not None else arg.arg
    if default is None:
        return shown
    return f"{shown} = {_value_shown(default, names)}"


def laid_out(before: str, parameters: list[str], after: str) -> str:
    """A signature: on one line, or with a line for each parameter."""
    line = f"{before}({', '.join(parameters)}){after}"
    if len(line) <= LINE_MAX:
        return line
    return f"{before}(\n" + "".join(f"    {each},\n" for each in parameters) + f"){after}"


def call_shown(it: Any, name: str, *, is_method: bool = False) -> str:
    """How a function is called."""
    module, _ = _home(it)
    node = function_node(it)
    parameters = parameters_of(node, module, is_method=is_method)
    returned = returned_by(it)
    if is_decorator(it):
        if returned == DECORATOR:
            return "@" + laid_out(name, parameters, "")
        return f"@{name}\n@" + laid_out(name, parameters[2:], "")
    after = "" if returned in ("", "None", "Never", "NoReturn") else f" -> {returned}"
    awaits = isinstance(node, ast.AsyncFunctionDef) and not returned.startswith(("AsyncIterator", "AsyncGenerator"))
    return ("await " if awaits else "") + laid_out(name, parameters, after)


def names_in(types: Iterable[str]) -> list[str]:
    """The names of classes in types, each once."""
    return list(dict.fromkeys(name for each in types for name in re.findall(r"[A-Z]\w+", each)))


def is_decorator(it: Any) -> bool:
    """Whether a function is written above another one: it returns a function of it, or may be given it alone."""
    first = function_node(it).args.posonlyargs[:1]
    return returned_by(it) == DECORATOR or ([each.arg for each in first] == ["fn"] and returned_by(it) == "Any")


def returned_by(it: Any) -> str:
    """The type that a function returns."""
    return type_shown(function_node(it).returns, vars(_home(it)[0]))


def constructor_shown(it: type, name: str) -> str:
    """How an object of a class is made: by its `__init__`, or by its fields."""
    init = vars(it).get("__init__")
    if inspect.isfunction(init) and init.__qualname__ in _nodes(_home(it)[1]):
        return laid_out(name, parameters_of(function_node(init), _home(it)[0], is_method=True), "")
    fields = fields_of(it)
    is_keyword = _is_keyword_only(it)
    shown = [f"{each.name}: {each.type}" + (f" = {each.default}" if each.default else "") for each in fields]
    return laid_out(name, ["*", *shown] if is_keyword and shown else shown, "")


def _is_keyword_only(it: type) -> bool:
    node = class_node(it)
    said = [*node.keywords, *(kw for each in node.decorator_list if isinstance(each, ast.Call) for kw in each.keywords)]
    return any(kw.arg == "kw_only" and isinstance(kw.value, ast.Constant) and kw.value.value is True for kw in said)


# -- Fields ------------------------------------------------------------------------------------------------------


def fields_of(it: type) -> list[Field]:
    """The public fields of a class, with what the strings below them say."""
    found: dict[str, Field] = {}
    for each in ours(it):
        names = vars(_home(each)[0])
        for field in _fields_in(class_node(each).body, names):
            found[field.name] = field
        if "__init__" in vars(each):
            for node in class_node(each).body:
                if isinstance(node, ast.FunctionDef) and node.name == "__init__":
                    found |= {field.name: field for field in _attributes_in(node, names)}
    return [field for field in found.values() if not field.name.startswith("_")]


def _fields_in(body: list[ast.stmt], names: dict[str, Any]) -> Iterator[Field]:
    for node, following in pairwise([*body, None]):
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=hint, value=value):
                if not (shown := type_shown(hint, names)).startswith("ClassVar"):
                    default = "" if value is None else _default_shown(value, names)
                    yield Field(name, shown, default, _text_of(following))
            case ast.Assign(targets=[ast.Name(id=name)]) if text := _text_of(following):
                yield Field(name, "", "", text)
            case _:
                pass


def _attributes_in(init: ast.FunctionDef, names: dict[str, Any]) -> Iterator[Field]:
    """What `__init__` makes and explains; an attribute that is an argument has its type."""
    args = [*init.args.posonlyargs, *init.args.args, *init.args.kwonlyargs]
    hints = {arg.arg: type_shown(arg.annotation, names) for arg in args}
    for node, following in pairwise([*init.body, None]):
        text = _text_of(following)
        match node:
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=hint) if text:
                yield Field(name, type_shown(hint, names), "", text)
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name), *_], value=value) if text:
                yield Field(name, hints.get(value.id, "") if isinstance(value, ast.Name) else "", "", text)
            case _:
                pass


def _text_of(node: ast.stmt | None) -> str:
    match node:
        case ast.Expr(value=ast.Constant(value=str(text))):
            return " ".join(text.split())
        case _:
            return ""


def _default_shown(node: ast.expr, names: dict[str, Any]) -> str:
    """The default of a field; what is made for each object is shown as that."""
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("field"):
        for keyword in node.keywords:
            if keyword.arg == "default":
                return _value_shown(keyword.value, names)
            if keyword.arg == "default_factory":
                made = ast.unparse(keyword.value)
                return {"dict": "{}", "list": "[]", "tuple": "()"}.get(made, "...")
        return ""
    return _value_shown(node, names)
