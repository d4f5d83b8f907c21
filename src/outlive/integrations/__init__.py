"""Outlive in the frameworks that people have. Each module needs its framework, and no other one imports it."""
