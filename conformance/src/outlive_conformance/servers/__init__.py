"""Servers that a test or a script starts for itself: each is a child process on a free port, and is removed at the end.

postgres           one PostgreSQL server, or a copy of another
postgres_programs  where its programs are, and which versions there are
pgbouncer          a pool in transaction mode before it
etcd               one node or a cluster
proxy              a network that cuts connections and holds them back
launched           what all of them do at their start and at their end
"""
