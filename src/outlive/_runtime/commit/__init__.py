"""Group commit: every change of every tree goes through here, in the order in which it was said.

A change has one of two outcomes, and its tree hears it from a plain callback. A store that is away is waited for.
"""
