"""Group commit: every change of every tree goes through here, in the order in which it was said.

A change is committed or conflicts, and the committer tells its tree so from a plain callback. It waits for a store that
is away, and tries again what the store holds.
"""
