"""The types on the wire: frozen structs, and how values of ours become them.

Times are RFC 3339 in UTC, spans are seconds, ids are strings. Nothing here is a type of a user's.
"""
