"""Brings into the site what lies outside `docs`: the README and its like, and a page for each program of `examples`.

The pages of the repository link to each other by files, so that they can be read where the code is. Here the same
links lead to pages of the site: a file outside `docs` has the page `outside/<path>`, which for a program shows its
docstring as prose and the rest as code. MkDocs calls the functions of this file by their names.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = "outside"
_LINK = re.compile(r"(?<=\]\()((?:\.\./)*)([^)\s#:]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^(```\w+) [\w-]+$", re.MULTILINE)
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".json": "json", ".ts": "typescript"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the parts of the navigation that follow from folders."""
    parts = {
        "Patterns": [f"{OUTSIDE}/{path}.md" for path in _list_programs("examples/patterns")],
        "Internals": _list_pages("internals"),
        "Decisions": _list_pages("decisions"),
    }
    config.nav = [_filled(entry, parts) for entry in config.nav or []]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file outside `docs` that a page links to, and for those that these link to."""
    texts = {page.src_uri: page.content_string for page in files.documentation_pages()}
    todo = [*texts, *_add(files, config, texts, _list_programs("examples/patterns"))]
    while todo:
        uri = todo.pop()
        todo += _add(files, config, texts, sorted(_targets_outside(uri, texts[uri])))
    return files


def on_page_markdown(markdown: str, *, page: Page, files: Files, **_: Any) -> str:
    """Let links to files lead to their pages, and drop from code blocks what only tests read (`no-run`)."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]  # It would say only "Home", and the page is to fit a screen.

    def link(match: re.Match[str]) -> str:
        target = _target_of(page.file.src_uri, match)
        uri = _uri_of(target)
        if files.get_file_from_path(uri) is None:
            return match[0]
        return posixpath.relpath(uri, posixpath.dirname(page.file.src_uri) or ".") + (match[3] or "")

    return _FENCE.sub(r"\1", _LINK.sub(link, markdown))


def _filled(entry: Any, parts: dict[str, list[str]]) -> Any:
    if isinstance(entry, dict):
        return {title: [*inner, *parts[title]] if title in parts else inner for title, inner in entry.items()}
    return entry


def _list_pages(folder: str) -> list[str]:
    return [f"{folder}/{path.name}" for path in sorted((ROOT / "docs" / folder).glob("*.md"))]


def _list_programs(folder: str) -> list[str]:
    return [f"{folder}/{path.name}" for path in sorted((ROOT / folder).glob("*.py"))]


def _targets_outside(uri: str, text: str) -> set[str]:
    """The files outside `docs` that a page links to, as paths from the root of the repository."""
    targets = {_target_of(uri, match) for match in _LINK.finditer(text)}
    return {it for it in targets if not it.startswith("docs/") and (ROOT / it).is_file()}


def _target_of(uri: str, match: re.Match[str]) -> str:
    """Where a link of a page leads, as a path from the root of the repository."""
    page = uri.removeprefix(f"{OUTSIDE}/") if uri.startswith(f"{OUTSIDE}/") else f"docs/{uri}"
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), match[1] + match[2]))


def _uri_of(path: str) -> str:
    """The page of a file."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"{OUTSIDE}/{path}" if path.endswith(".md") else f"{OUTSIDE}/{path}.md"


def _add(files: Files, config: MkDocsConfig, texts: dict[str, str], paths: list[str]) -> list[str]:
    """Add the pages of these files, and give those that are new."""
    added = [path for path in paths if _uri_of(path) not in texts]
    for path in added:
        text = (ROOT / path).read_text("utf-8")
        texts[_uri_of(path)] = text if path.endswith(".md") else _shown(path, text)
        files.append(File.generated(config, _uri_of(path), content=texts[_uri_of(path)]))
    return [_uri_of(path) for path in added]


def _shown(path: str, text: str) -> str:
    """A program as a page: its name, its docstring and its code."""
    name = Path(path).name
    prose, code = "", text
    if path.endswith(".py") and (doc := ast.get_docstring(ast.parse(text))):
        prose = f"{doc}\n\n"
        code = text.split('"""', 2)[2].lstrip()
    return f"# {_title(name)}\n\n{prose}`{path}`\n\n````{_LANGUAGES.get(Path(path).suffix, '')}\n{code}````\n"


def _title(name: str) -> str:
    return Path(name).stem.replace("_", " ").capitalize() if name.endswith(".py") else name
