"""One worker of one process: its sessions, its lease, what it claims, and whom it rescues.

A session begins with a lease and a worker id that is never used again, and is over when the lease is lost. The worker
moves trees, the claimer brings them, the lease keeper and the watchdog run beside the event loop.
"""
