"""Figures of Outlive alone: each is printed as soon as it is measured, and kept for the JSON of `python -m bench`."""

from __future__ import annotations

import re
from typing import NamedTuple


class Shown(NamedTuple):
    """A figure that was printed."""

    name: str
    figure: float
    unit: str
    target: str
    """Such as `< 10 ms`; `none` without a target."""

    @property
    def is_met(self) -> bool | None:
        """Whether the target is met; None without one."""
        bound = re.match(r"([<>]) ([\d.,]+)", self.target)
        if bound is None:
            return None
        limit = float(bound[2].replace(",", ""))
        return self.figure < limit if bound[1] == "<" else self.figure > limit


SHOWN: list[Shown] = []
"""All of this process, in their order."""


def shown(name: str, figure: float, unit: str, target: str) -> None:
    """Print a figure in one line, and keep it."""
    SHOWN.append(Shown(name, figure, unit, target))
    print(f"{name:<58} {figure:>10,.2f} {unit:<4} (target: {target})", flush=True)
