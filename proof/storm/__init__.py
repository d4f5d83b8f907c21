"""A storm over a real fleet, and the proof that it did no harm.

    python -m proof.storm kill --store sqlite --kills 200 --seed 7
    python -m proof.storm chaos --store both --kills 300
    python -m proof.storm limits --store both --kills 300

Several worker processes share one store. A client process starts runs and batches, sends signals, decides and cancels,
and writes down the answers that it got (`acks`); every step writes down what it really did (`effects`). The storm kills
workers, client and the server of the store with -9 at random moments, also while they start and recover, freezes
workers for longer than their lease, and starts everything again. `chaos` adds what is worse than death: lines that are
cut between a COMMIT and its answer, a store that is away for a minute, a full disk, and orderly restarts between all of
that. Then everything may finish, and the checks compare four sources: the plan, the answers, what was done, and the
journals.

    op           what programs are made of
    steps        the steps: one of each kind
    program      the workflows: an interpreter of little programs, and a run of several generations
    plan         the programs, from a seed, with the ends they must come to

    effects      what steps really did
    witness      a process that writes down what others did
    tally        what engines counted
    acks         what the client was answered
    worker       one worker process
    client       the client process
    insistence   how both get along with a store that is away

    trial        how a trial is set up, and what it notes down
    fault        what happens how often, dealt from the seed
    processes    the processes of a trial: started, killed, frozen, restarted
    outages      when the store is away
    disk         a disk that can be made full, and empty again
    places       what is special about each store
    storm        does what was dealt

    evidence     everything that is known at the end
    reading      the evidence as checks need it
    zombie       what a worker began that had lost its lease: the yardstick for fencing
    situation    how often each thing happened that could have gone wrong
    checks       what must hold, each check one function
    feature_checks  what must hold for one feature each
    report       what is printed

    limits       the storm over queues: at no instant more than they allow
    drills       measurements with a fleet: fail-over, many orphans, the cost of a lease
"""
