"""A store that is a log: what a store of your own may look like. The README beside it says how it works.

import examples.store.log_store
engine = outlive.Engine("log:orders.log")
"""

from examples.store.log_store.store import LogStore
from outlive.stores import register_store

__all__ = ["LogStore"]

register_store("log", lambda rest, clock: LogStore(rest, clock=clock))
