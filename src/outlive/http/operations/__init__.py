"""The operations of the API, which features declare. Importing this imports all of them."""

from importlib import import_module

from outlive._features import FEATURES

for _feature in FEATURES:
    for _module in _feature.operations:
        import_module(_module)
