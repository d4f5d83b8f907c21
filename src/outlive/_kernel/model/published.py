"""The mark that removes a field with `outlive.publish`, in the place of a value."""

from __future__ import annotations

import enum
from typing import Final


class Removed(enum.Enum):
    """Has one member, for type checkers."""

    REMOVED = "removed"


REMOVED: Final = Removed.REMOVED
"""Takes a field out of what a run has published: `outlive.publish(stage=outlive.types.REMOVED)`."""
