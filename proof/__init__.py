"""Programs that prove the engine. They are not part of the package that users install.

    storm         a real fleet, and everything that machines, disks and networks do to one
    differential  random operations on all stores, compared with an oracle
    simulation    a fleet on virtual time with every fault, from a seed

Run them from the root of the checkout: `python -m proof.storm kill`, or `make kill`.
"""
