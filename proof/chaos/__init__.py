"""Everything that machines, disks and networks do to a fleet, done to a real one, and the proof that it did no harm.

    python -m proof.chaos --store both --kills 300

The trials of `proof.kill` are about death: processes and the server of the store end without a word. Here the
same fleet, with the same programs, the same client and the same checks, also meets what is worse than death: workers
that stand still for longer than their lease and then go on, lines that are cut between a COMMIT and its answer, stores
that are away for a minute, disks that are full, and orderly restarts between all of that. What steps really did is
written down by a witness, a process of its own that shares nothing with store and workers.

    trial        how a trial is set up
    disk         a disk that can be made full, and empty again
    absence      a store that is away for long
    fault        what happens how often, dealt from the seed
    storm        the supervisor that does it
    evidence     what is known in the end beyond that of a kill trial
    zombie       what a worker began that had lost its lease: the yardstick for fencing
    checks       what must hold beyond the checks of a kill trial
    situation    how often each thing happened that could have gone wrong
    drills       measurements with a fleet: fail-over, many orphans, the cost of a lease
"""
