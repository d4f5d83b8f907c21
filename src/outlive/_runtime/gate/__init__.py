"""What an attempt asks before it begins: its breaker and its rate limit.

What breakers and limits remember is in cells, which are in memory or shared through the store.
"""
