"""Looks at a page as those do who cannot see it, or not well: axe-core, in both themes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import Page

AXE = Path(__file__).parent / "axe" / "axe.min.js"
SHOTS = os.environ.get("OUTLIVE_SCREENSHOTS", "")
"""A folder for pictures of every view that is looked at; none unless given."""
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")


def check_view(page: Page, name: str) -> None:
    """No rule of axe is broken on what the page shows now, in either theme.

    Pictures go to `$OUTLIVE_SCREENSHOTS/<name>-<theme>.png`.
    """
    for theme in THEMES:
        page.emulate_media(color_scheme=theme)
        found = problems(page)
        if SHOTS:
            Path(SHOTS).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(Path(SHOTS) / f"{name}-{theme}.png"))
        assert not found, f"{name}, {theme}:\n" + "\n".join(found)


def problems(page: Page) -> list[str]:
    """What axe finds: the rule, and where."""
    if not page.evaluate("() => 'axe' in window"):
        # Not as a script tag: the policy of the page allows none but its own.
        page.evaluate(AXE.read_text("utf-8"))
    found: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['id']} ({each['impact']}): {each['help']}\n    "
        + "\n    ".join(f"{node['html'][:160]}: {node['failureSummary'][:300]}" for node in each["nodes"][:5])
        for each in found["violations"]
    ]
