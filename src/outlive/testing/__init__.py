"""The workshop: what a user needs to test workflows, and what a store author needs to test a store."""
