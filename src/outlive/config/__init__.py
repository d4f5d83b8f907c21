"""Configuration: `outlive.toml` or `[tool.outlive]` of `pyproject.toml`, then the environment, then what callers give.

`setting.py` has one row for each setting, and is the source of everything: what a file may have, the names of the
variables, what `outlive config show` lists, and the table of the guide (a test compares).
"""
