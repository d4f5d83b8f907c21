"""The contract on dictionaries: for tests, for trying things out, and as the oracle for the other stores.

* `state`: what the stores of one process share.
* `transaction`: users' own tables, in a SQLite database that lives in memory.
* `store`: the verbs.
"""

from outlive._kernel.store.memory.state import MemoryState, Tree
from outlive._kernel.store.memory.store import MemoryStore

__all__ = ["MemoryState", "MemoryStore", "Tree"]
