"""Attempts of steps: which of them run now, and how their functions are called.

An attempt ends with a result or a failure, which is reported to the worker. Nothing here writes to a journal.
"""
