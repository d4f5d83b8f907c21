"""Why a large document, or a large value of a stranger, is read without the garbage collector.

A document of a thousand steps becomes tens of thousands of small objects, and nearly all of them stay. Python's
collector counts new objects and looks at all that there are again and again meanwhile, which takes longer than the work
itself. Hardly any of these objects refer to each other in circles, so it is paused until the document is read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Let nothing be collected meanwhile; for a fraction of a second."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
