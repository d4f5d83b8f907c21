"""The simulator: a fleet of workers over one store, with everything that can go wrong, from a seed.

The workers are the real ones: engine, worker, committer, claimer and keeper are the code of production. Their
event loops (`loop`), clocks (`clock`) and lines to the store (`link`) are simulated, on one thread, in virtual time.

    plan  --> episode --> process (engine on a simulated loop) --> link --> server (the memory store, audited)
                 |            ^                                     |
                 |         nemesis (kill, pause, stop, skew)     weather (lost, late, slow, refused)
                 v
               judge, with the books of the store, the ledger of effects, and what users were answered

An episode has two halves. In the first one faults happen, and nothing unsafe may: every write is checked when it is
made, every effect when it begins. Then all faults end, and within a bound everything must end as the oracle says. So
both are tested: that nothing bad happens, and that something good does.

Runs are functions that play a program, and state machines that go a list of legs (`machines`).

What a seed does depends on the seed and the code alone. A failing seed prints the command that plays it again; `shrink`
makes its plan small enough to read; the museum keeps it.

What this is not: a test of SQLite or PostgreSQL (the store is the one in memory, which passes the same conformance
suite), of threads, of child processes, or of transactions of steps. `proof.storm` has real processes.
"""

from proof.simulation.episode import Episode, Story, simulate
from proof.simulation.many import Report, simulate_many
from proof.simulation.plan import Plan, draw

__all__ = ["Episode", "Plan", "Report", "Story", "draw", "simulate", "simulate_many"]
