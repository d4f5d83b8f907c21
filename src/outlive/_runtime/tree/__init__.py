"""One tree of runs in memory: how it comes there, what happens to it, what it has to say, and how it leaves.

Nothing here waits for the store. What a tree has to say is collected in a draft, and the worker gives that to the
committer.
"""
