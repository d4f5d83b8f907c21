"""Plain pages for people who have a link and no key: a title and sentences, and no script, which they do not need."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

HTML = "text/html; charset=utf-8"


def wants_page(headers: Mapping[str, str]) -> bool:
    """Whether a browser asks: it names the type of a page, and a program that takes anything does not."""
    return "text/html" in headers.get("accept", "")


def page(title: str, *sentences: str, button: str = "") -> bytes:
    """A page that says this; its button, if there is one, sends an empty form to the address of the page."""
    form = f'<form method="post"><button>{escape(button)}</button></form>\n' if button else ""
    said = "".join(f"<p>{escape(sentence)}</p>\n" for sentence in sentences)
    return _PAGE.format(title=escape(title), said=said, form=form).encode()


_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><h1>{title}</h1>
{said}{form}</body></html>
"""
