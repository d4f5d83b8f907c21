"""Leases in etcd: it says who is alive, the store keeps the sessions, and the journal says who may write.

Theory
------
* A session is a key on an etcd lease of its own, and a row in the store. The key is there first: a worker that sees the
  row and then no key knows that the lease has ended. Worker ids are never used twice, so a key that is gone stays gone.
* etcd's leases end late (every change of leader begins them again) and sometimes early (a leader that stood still ends
  leases of others). Neither matters for safety: what a worker writes is fenced by the journal's compare-and-swap, and
  no answer of etcd takes part in it. etcd decides only who tries, and how soon.
* The row has a lease of its own in the store, several times as long (`beat.py`). If etcd is lost for good, or its data
  are, what it kept is free when that has run out: losing etcd costs time and nothing else.
* Two etcds that look alike (each machine's own, at `localhost`) must not judge each other's sessions. So the prefix
  has an id, made by the first process and kept in etcd itself; a row names it, and no worker judges a row that names
  another.
* The client is our own, because the protocol is small: JSON over HTTP, which every etcd since 3.4 speaks on its
  client port (`gateway.py`). Everything is asked with a bound on time, on one endpoint after the other.
"""

from outlive._kernel.lease.etcd.address import parse_address
from outlive._kernel.lease.etcd.gateway import Gateway
from outlive._kernel.lease.etcd.keys import count_keys
from outlive._kernel.lease.etcd.leases import EtcdLeases

__all__ = ["EtcdLeases", "Gateway", "count_keys", "parse_address"]
