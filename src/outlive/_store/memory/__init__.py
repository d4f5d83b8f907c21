"""The contract on dictionaries: for tests, for trying things out, and as the oracle for the other stores.

* `state`: what the stores of one process share.
* `transaction`: users' own tables, in a SQLite database that lives in memory.
* `reading`, `sessions`: the verbs that only look, and those about workers.
* `checkpoints`: rows of those who want nothing else.
* `store`: the other verbs.
"""

from outlive._store.memory.state import MemoryState, Tree
from outlive._store.memory.store import MemoryStore

__all__ = ["MemoryState", "MemoryStore", "Tree"]
