"""Group commit: every change of every tree goes through here, in the order in which it was submitted.

A change is committed or conflicts, and the committer answers that from a plain callback. It waits for a store that is
away, and tries again until every change has an outcome.
"""
