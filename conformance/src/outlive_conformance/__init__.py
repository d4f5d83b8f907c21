"""The package for the author of a store, which is installed beside Outlive and not with it.

    suite    a test for every sentence of the store contract; needs pytest
    servers  PostgreSQL, PgBouncer, etcd and a bad network, each started for one test or one script

The servers know nothing of the suite, and nothing in Outlive knows of this package.
"""
