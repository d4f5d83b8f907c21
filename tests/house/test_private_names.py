"""Tests use what a room promises, and no private names of another file.

What a test needs of the parts of an engine that runs, it asks for in `tests/engine/inside.py`, the one file that knows
how they are put together.
"""

import ast
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

from tests.docs.public import public_names

ROOT = Path(__file__).parents[2]
DOOR = "engine/inside.py"
OF_HOUSE = "house/"
"""These tests read code as text, and hold pieces of it."""

REACH = re.compile(r"\.(_[a-z]\w*)")
IMPORT = re.compile(r"^\s*from (?:outlive|tests|proof)[\w.]* import (.*)$", re.MULTILINE)
OWN = re.compile(r"(?:(?:self|cls)\.|def |class )(_[A-Za-z]\w*)")
NOT_REACHED = ("self", "cls", "super()", "outlive", "os", "asyncio", "sys")


def reaches_in(text: str) -> list[str]:
    """The private names of others that a file uses, once for each use."""
    found = [
        it[1] for it in REACH.finditer(text) if not text[max(0, it.start() - 8) : it.start()].endswith(NOT_REACHED)
    ]
    imported = [name for names in IMPORT.findall(text) for name in re.findall(r"\b_[A-Za-z]\w*", names)]
    own = set(OWN.findall(text)) if found else set()
    return [name for name in found if name not in own] + imported


def test_tests_use_no_private_names_of_others() -> None:
    """A change of how one room works must not change the tests of another."""
    tests = ROOT / "tests"
    files = {path.relative_to(tests).as_posix(): path for path in tests.rglob("*.py")}
    found = [
        f"tests/{name}: {', '.join(reaches)}"
        for name, path in sorted(files.items())
        if name != DOOR and not name.startswith(OF_HOUSE) and (reaches := reaches_in(path.read_text("utf-8")))
    ]

    advice = f"test what the room promises, give it a name without an underscore, or add a function to tests/{DOOR}"
    assert not found, f"{advice}:\n" + "\n".join(found)


PLAIN = (int, str, float, tuple, frozenset, dict, type(None), ModuleType)
"""Two names may hold the same one by chance."""


def twins() -> dict[int, str]:
    """The public name of each object that has one, by the id of the object."""
    found: dict[int, str] = {}
    for name, it in public_names():
        if not isinstance(it, PLAIN):
            found.setdefault(id(it), name if name.startswith("outlive.") else f"outlive.{name}")
    return found


def imports_with_twin(text: str, public: dict[int, str]) -> list[str]:
    """The imports from private modules in a file that could be from a public module."""
    return [
        f"{node.module}.{alias.name} is {public[id(it)]}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("outlive._")
        for alias in node.names
        if id(it := getattr(import_module(str(node.module)), alias.name, None)) in public
    ]


def test_a_name_with_a_public_twin_is_imported_from_there() -> None:
    """A test reads as a program of a user does, and a module that moves changes no test."""
    public = twins()
    files = sorted((ROOT / "tests").rglob("*.py"))
    found = [
        f"{path.relative_to(ROOT)}: {twin}"
        for path in files
        for twin in imports_with_twin(path.read_text("utf-8"), public)
    ]

    assert not found, "import the public name:\n" + "\n".join(found)


def test_a_twin_is_the_same_object() -> None:
    """A private name that has no public one may be imported, and so may a public name."""
    text = "from outlive._kernel.model import Retry, RunStatus\nfrom outlive.events import StepSucceeded"

    assert imports_with_twin(text, twins()) == ["outlive._kernel.model.Retry is outlive.Retry"]


def uses_of_uvicorn(path: Path) -> set[str]:
    """The names of uvicorn that a file uses, and of the modules that it loads."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.Attribute(value=ast.Name(id="uvicorn"), attr=name):
                found.add(name)
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "uvicorn":
                found |= {f"{module}.{alias.name}" for alias in node.names}
            case ast.alias(name=str(name)) | ast.Constant(value=str(name)) if re.fullmatch(r"uvicorn(\.\w+)*", name):
                found.add(name)
            case _:
                pass
    return found


def test_the_package_uses_what_uvicorn_documents() -> None:
    """In one file, which the mounted app does not need: the app had watched a flag of the server behind a handler of a
    signal, and stopped the event loop of every application."""
    package = ROOT / "src" / "outlive"
    found = {
        path.relative_to(package).as_posix(): uses for path in package.rglob("*.py") if (uses := uses_of_uvicorn(path))
    }

    assert found == {"http/server.py": {"uvicorn", "Config", "Server"}}


MAKES_SERVERS = ("new_server", "Server")


def uses_of_servers(text: str) -> set[str]:
    """Each chain of attributes that a file asks of a server of uvicorn, with `=` behind one that it sets, and each call
    that makes a server under another name than `server`, which would not be found here."""
    found = set()
    tree = ast.parse(text)
    inner = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Return | ast.Expr)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "server")
    }
    for node in ast.walk(tree):
        match node:
            case ast.Attribute() if id(node) not in inner and (chain := ast.unparse(node)).startswith("server."):
                found.add(chain if isinstance(node.ctx, ast.Load) else f"{chain} =")
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in MAKES_SERVERS:
                found |= set() if id(node) in named else {ast.unparse(node)}
            case _:
                pass
    return found


def test_what_is_asked_of_a_server_is_what_uvicorn_documents() -> None:
    """A server serves, has a flag that ends it, and says the settings that it was made with. Settings are arguments of
    its making: one that is changed later counts only if uvicorn happens to read it then."""
    package = ROOT / "src" / "outlive"
    files = {path: path.read_text("utf-8") for path in package.rglob("*.py")}
    uses = {
        path.relative_to(package).as_posix(): uses_of_servers(text)
        for path, text in files.items()
        if "new_server" in text
    }

    assert uses == {
        "http/server.py": {"server.config.host", "server.config.port", "server.config.app.connections", "server.serve"},
        "dev/session.py": {"server.should_exit ="},
        "cli/demo.py": {"server.should_exit ="},
        "cli/dev.py": set(),
        "cli/serve.py": {"server.should_exit ="},
    }


def test_a_setting_that_is_changed_on_a_server_is_found() -> None:
    """Whether it is set or added to; and a server of another name is found where it is made."""
    text = "server.config.backlog += 1\nserver.config.port = 1\nconfig = server.config\nother = new_server(app)"

    assert uses_of_servers(text) == {
        *("server.config.backlog =", "server.config.port =", "server.config", "new_server(app)")
    }
    assert uses_of_servers("server = x.new_server(app)\nnew_server(None)\nreturn uvicorn.Server(config)") == set()


def test_only_what_is_private_elsewhere_counts() -> None:
    """Not one's own names, not modules of ours, and not those of the standard library."""
    text = "engine._store\nworkers[0]._lease\nf()._task\nfrom outlive.x import _y, z\nfrom tests.a import b, _c"
    own = "self._a = 1\nself.b._a\nsuper()._b()\nimport outlive._kernel.store.x\nos._exit(1)\ndef _d(): x._d()"

    assert reaches_in(text) == ["_store", "_lease", "_task", "_y", "_c"]
    assert reaches_in(own) == []
