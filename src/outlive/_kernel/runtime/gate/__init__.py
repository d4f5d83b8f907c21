"""The gate that an attempt passes before it begins: the breaker and the rate limit of its step.

The states of breakers and limits are in cells, which are in memory or shared through the store.
"""
