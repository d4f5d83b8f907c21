"""The composition root: a store, a committer, a client and, by default, a worker."""

from outlive.engine.engine import Engine

__all__ = ["Engine"]
