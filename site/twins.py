"""Gives every page of the site a twin in Markdown, and the site an `llms.txt`, for programs that read documentation.

The twin of `guides/steps.html` is `guides/steps.md` beside it, and its links lead to other twins. `llms.txt` is the
home of the site as a list: its first paragraph, and the rows of its tables under their headings. MkDocs calls the
functions of this file that begin with `on_`, after those of `outside.py`, so the text of a page has its last form here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

HOME = "index.md"
_ROW = re.compile(r"\| \[(?P<title>.+?)\]\((?P<target>\S+?)\) \| (?P<about>.+) \|")
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_HEAD_END = "</head>"


def on_post_page(output: str, *, page: Any, config: Any) -> str:
    """Write the twin of a page, and name it in the head of the page."""
    uri, text = page.file.src_uri, page.markdown
    _write(config, uri, text)
    if uri == HOME:
        _write(config, "llms.txt", list_pages(text))
    link = f'<link rel="alternate" type="text/markdown" href="{Path(uri).name}">\n'
    return output.replace(_HEAD_END, link + _HEAD_END, 1)


def on_post_build(*, config: Any) -> None:
    """Fail if a page has no twin, or if `llms.txt` names a page that is not there."""
    site = Path(config.site_dir)
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    lost = [page.relative_to(site).as_posix() for page in pages if not _has_twin(page)]
    text = (site / "llms.txt").read_text("utf-8")
    lost += [target for _, target in _LINK.findall(text) if not (site / target.partition("#")[0]).is_file()]
    if lost:
        raise SystemExit(f"no Markdown of {', '.join(lost)}")


def list_pages(home: str) -> str:
    """The home of the site as an `llms.txt`: a title, a summary, and under each heading the pages that it names."""
    start, *groups = re.split(r"^## ", home, flags=re.MULTILINE)
    title, about, _ = start.split("\n\n", 2)
    parts = [title, "> " + " ".join(about.splitlines())]
    for group in groups:
        heading, _, text = group.partition("\n")
        entries = [f"- [{it['title']}]({it['target']}): {it['about']}" for it in _ROW.finditer(text)]
        if entries := entries or [f"- [{name}]({target})" for name, target in _LINK.findall(text)]:
            parts += [f"## {heading}", "\n".join(entries)]
    return "\n\n".join(parts) + "\n"


def _has_twin(page: Path) -> bool:
    """Whether the Markdown of a page is beside it; a README is the index of its folder."""
    return page.with_suffix(".md").is_file() or (page.name == "index.html" and page.with_name("README.md").is_file())


def _write(config: Any, uri: str, text: str) -> None:
    path = Path(config.site_dir, uri)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
