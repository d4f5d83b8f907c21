"""Programs that prove the engine. They are not part of the package that users install.

    storm         a real fleet, and everything that machines, disks and networks do to one
    differential  random operations on all stores, compared with an oracle
    simulation    a fleet on virtual time with every fault, from a seed
    live          examples/invoices under load, while everything in it is killed
    cron          ticks in all time zones, held against a second implementation
    fuzz          random expressions and documents of flows
    http          what the HTTP API promises, malformed requests, servers that are killed

Run them from the root of the checkout: `python -m proof.storm kill`, or `make kill`.
"""
