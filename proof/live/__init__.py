"""A life with the application in `examples/invoices`: the world on one side of it, kills on the other.

Theory
------
* Everything is as people run it: uvicorn, `outlive worker`, a PostgreSQL server with its data on a disk, two services
  outside that keep ledgers of their own. Nothing is mounted, faked or sped up; only time limits are shorter.
* One process plays the world and deals the faults, from a seed (`world`, `storm`). It knows what was accepted, because
  it has the answers; what was done is in the ledgers of the services and in the tables of the application.
* At the end nothing moves any more, and the two are compared (`checks`): exactly, order by order.
* Meanwhile each process is looked at once a second (`watch`). What grows in the life of a process, and does not stop
  growing after a warm-up, fails the trial (`growth`). In each half of a trial one process of each kind is spared, so
  that it lives long enough for that.
"""
