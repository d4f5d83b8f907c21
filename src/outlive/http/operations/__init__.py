"""The operations of the API about itself, and all operations that features declare: importing this imports them."""

from importlib import import_module

from outlive._features import FEATURES
from outlive.http.operations import document, health

__all__ = ["document", "health"]

for _feature in FEATURES:
    for _module in _feature.operations:
        import_module(_module)
