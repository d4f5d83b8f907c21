"""The files of the dashboard, as they are served.

All of them but the page itself are below a folder that is named after their content: `static/1f3a.../app.js`. A module
names others relative to itself, so that all of them are in that folder, and a browser may keep each for ever. The page
is asked for each time, and answered with 304 while it is the same.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

from outlive.http.static import Page

FOLDER = "static"
SHARED = ("parts/pages.js", "parts/table.js", "parts/time.js")
"""Modules that a view would ask for only after it was loaded itself."""
VENDORED = "vendor/"
VIEW = re.compile(r"module: '\./([^']+)'")
"""The module of a view, in the table of views."""
TYPE = re.compile(r"/\*\* @type .*? \*/ ?")
"""The type of an expression, for the type check: a comment that other words may follow in the same line."""
NO_IMPORTS = "{}"
"""In the page, where it tells what the views import."""
MEDIA = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
KEPT = "public, max-age=31536000, immutable"
ASKED_FOR = "no-cache"


@dataclass(frozen=True)
class DashboardPages:
    """The page at the root, and the files below it, by their paths."""

    sources: dict[str, bytes]
    """By their paths below `static`."""

    @cached_property
    def version(self) -> str:
        """A name of the content of all files."""
        digest = hashlib.sha256()
        for path, body in sorted(self.sources.items()):
            digest.update(path.encode() + b"\0" + hashlib.sha256(body).digest())
        return digest.hexdigest()[:16]

    @cached_property
    def by_path(self) -> dict[tuple[str, ...], Page]:
        """All pages, by the parts of their paths; the root is one empty part."""
        found = {
            (FOLDER, self.version, *path.split("/")): _page(path, body, KEPT)
            for path, body in self.sources.items()
            if path != "index.html"
        }
        found[("",)] = _page("index.html", self._index(), ASKED_FOR)
        return found

    def find(self, parts: list[str]) -> Page | None:
        """The page at a path; None if there is none."""
        return self.by_path.get(tuple(parts))

    def _index(self) -> bytes:
        first = self.with_imports("app.js", *SHARED)
        preloads = "".join(f'<link rel="modulepreload" href="{FOLDER}/{path}">\n' for path in first)
        text = self.sources["index.html"].decode().replace("<!-- preload -->\n", preloads)
        text = text.replace(NO_IMPORTS, msgspec.json.encode(self._imports_of_views(first)).decode())
        return text.replace(f'"{FOLDER}/', f'"{FOLDER}/{self.version}/').encode()

    def _imports_of_views(self, first: list[str]) -> dict[str, list[str]]:
        """The imports of the module of each view, and theirs, without modules that the page loads first."""
        views = VIEW.findall(self.sources["views.js"].decode())
        return {f"./{view}": [f"./{it}" for it in self.with_imports(view)[1:] if it not in first] for view in views}

    def with_imports(self, *paths: str) -> list[str]:
        """Modules, what they import, and what these import."""
        found = [*paths]
        for path in found:
            found += [each for each in imports_in(path, self.sources[path].decode()) if each not in found]
        return found


def imports_in(path: str, source: str) -> list[str]:
    """The modules that a module imports when it is loaded, by their paths; what `import()` loads later is not in it."""
    folder = path.split("/")[:-1]
    found = []
    for line in source.splitlines():
        if line.startswith(("import ", "export ", "} from ")) and " from '." in line:
            steps = line.rpartition(" from '")[2].partition("'")[0].split("/")
            up = steps.count("..")
            found.append("/".join([*folder[: len(folder) - up], *(step for step in steps if step not in (".", ".."))]))
    return found


def thin(source: str) -> str:
    """A module without its comments and indentation, line by line: an error names the line of the source."""
    lines: list[str] = []
    is_comment = False
    for line in source.split("\n"):
        text = TYPE.sub("", line.strip())
        begins = is_comment or text.startswith("/**")
        lines.append("" if begins or text.startswith("//") else text)
        is_comment = begins and not text.endswith("*/")
    return "\n".join(lines)


def _page(path: str, body: bytes, cache_control: str) -> Page:
    if path.endswith(".js") and not path.startswith(VENDORED):
        body = thin(body.decode()).encode()
    tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    packed = gzip.compress(body, 9, mtime=0)
    return Page(MEDIA[path.rpartition(".")[2]], body, packed if len(packed) < len(body) else None, tag, cache_control)


@cache
def pages() -> DashboardPages:
    """The dashboard of this version of Outlive."""
    return DashboardPages(dict(_sources(files("outlive.dashboard") / FOLDER)))


def _sources(folder: Traversable, above: str = "") -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for each in folder.iterdir():
        path = f"{above}{each.name}"
        if each.is_dir():
            found += _sources(each, f"{path}/")
        elif path.rpartition(".")[2] in MEDIA:
            found.append((path, each.read_bytes()))
    return found
