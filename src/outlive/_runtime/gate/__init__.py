"""What an attempt asks before it begins: its breaker and its rate limit.

The states of breakers and limits are in cells, which are in memory or shared through the store.
"""
