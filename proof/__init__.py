"""Programs that prove the engine. They are not part of the package that users install.

    kill          processes and the server of the store are killed again and again
    chaos         the same fleet, with freezes, cut lines, full disks and long outages besides
    differential  random operations on all stores, compared with an oracle
    simulation    a fleet on virtual time with every fault, from a seed

Run them from the root of the checkout: `python -m proof.kill`, or `make kill`.
"""
