"""Measured drills with a fleet on PostgreSQL: what the loss of a worker costs, and what keeping runs does.

    python -m proof.storm.drills failover --how kill --runs 1000
    python -m proof.storm.drills orphans --runs 10000
    python -m proof.storm.drills beat --runs 10000

A drill measures, and prints what it found beside what is wanted; it is a command and not a test, because a number
depends on the machine. Every worker is a process of its own, and owns runs because it has started them itself: a run
that is started by an engine with a worker is created and claimed in one commit.

    work         the workflows, and one worker process
    fleet        a server and workers, started and ended
    failover     one of three workers is killed, frozen or asked to stop: when do its runs go on elsewhere?
    orphans      a worker with very many runs dies: how fast are they taken over, and what does new work notice?
    beat         a worker with very many runs: what does it write to keep them?
    measure      percentiles, and how they are printed
"""
