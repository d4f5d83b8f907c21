"""The root of all errors."""

from __future__ import annotations


class OutliveError(Exception):
    """Root of everything that Outlive raises on purpose."""


class InternalError(OutliveError):
    """A bug in Outlive itself; please report it with the traceback."""


class ConfigurationError(OutliveError, ValueError):
    """A setting that cannot work."""
