"""Spans of time as text: one grammar for programs, commands, settings, flows and HTTP.

A number and a unit, or several from the longest unit to the shortest: `90s`, `5m` or `5min`, `1h30m`, `2d`, `1.5h`,
`250ms`. ISO 8601: `PT15M`, `P1DT12H`. A number alone is seconds.
"""

from __future__ import annotations

import re

_NUMBER = r"[0-9]+(\.[0-9]+)?"
_SHORT = "".join(f"({_NUMBER}{unit})?" for unit in ("w", "d", "h", "(m|min)", "s", "ms"))
_DAYS, _TIME = (("W", "D"), ("H", "M", "S"))
_ISO = "P(?=[0-9T])" + "".join(f"({_NUMBER}{unit})?" for unit in _DAYS)
_ISO += "(T(?=[0-9])" + "".join(f"({_NUMBER}{unit})?" for unit in _TIME) + ")?"
SPAN = rf"^({_NUMBER}|(?=[0-9]){_SHORT}|{_ISO})$(?!\n)"
"""A pattern for spans of time as text, for JSON Schemas."""
EXAMPLES = '"90s", "5m", "1h30m", "2d" or "PT15M"'

_WHOLE = re.compile(SPAN)
_PART = re.compile(r"(?P<number>[0-9.]+)(?P<unit>ms|min|[wdhmsWDHMS]?)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3_600.0, "d": 86_400.0, "w": 604_800.0, "": 1.0}


def seconds_in(text: str) -> float | None:
    """The seconds of a span that was written as text; None if it is none."""
    if _WHOLE.match(text) is None:
        return None
    return sum(float(part["number"]) * _UNITS[part["unit"].lower()] for part in _PART.finditer(text))
