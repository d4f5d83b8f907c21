"""Opening a page in the browser of the person at this terminal."""

from __future__ import annotations

import os
import sys
import webbrowser


def open_page(url: str) -> bool:
    """Show a page, where there is a desktop; whether it was.

    Without one, Python would start a browser for terminals in this one, over what the command writes.
    """
    has_desktop = sys.platform in ("darwin", "win32") or any(
        os.environ.get(it) for it in ("DISPLAY", "WAYLAND_DISPLAY")
    )
    try:
        return has_desktop and webbrowser.open(url)
    except webbrowser.Error:
        return False
