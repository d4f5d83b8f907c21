"""Middleware: code around every start, step and workflow of an engine.

    engine = outlive.Engine(url, middleware=[outlive.middleware.Tracing()])

Derive from `Middleware` for one of your own.
"""

from outlive._kernel.define.middleware import Middleware, StartCall
from outlive._kernel.define.tracing import Tracing

__all__ = ["Middleware", "StartCall", "Tracing"]
