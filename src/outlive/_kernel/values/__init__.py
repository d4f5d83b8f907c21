"""The values that users hold: one for each thing, the same from an engine, a connection, the HTTP API and the command
line.

A value is frozen and has nothing of a store in it: instants are datetimes with UTC, statuses are text, and payloads are
plain JSON. It is made here of what a store has, and HTTP encodes it as it is. `outlive.types` lists them all.
"""
