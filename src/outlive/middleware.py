"""Middleware: code around every start, step and workflow of an engine.

    engine = outlive.Engine(url, middleware=[outlive.middleware.Tracing()])

Derive from `Middleware` for one of your own.
"""

from outlive._define.middleware import Middleware, StartCall
from outlive._define.tracing import Tracing

__all__ = ["Middleware", "StartCall", "Tracing"]
