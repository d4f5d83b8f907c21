"""One tree of runs in memory: how it comes there, what happens to it, its next change, and how it leaves.

Nothing here waits for the store. Events are collected in a draft, which the worker gives to the committer.
"""
