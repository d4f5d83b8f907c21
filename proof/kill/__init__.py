"""Workers that are killed again and again, and the proof that nothing is lost or done twice.

    python -m proof.kill --store sqlite --kills 200 --seed 7
    python -m proof.kill --store postgres --kills 200 --server-kills 20

Several worker processes share one store. A client process starts runs and batches, sends signals, decides and cancels,
and writes down what it was told (`acks`); every step writes down what it really did (`effects`). A supervisor kills
workers, client and the server of the store with -9 at random moments, also while they start and recover, and starts
them again. Then everything may finish, and the checks compare four sources: the plan, what the client was told, what
was done, and the journals.

    op           what programs are made of
    steps        the steps: one of each kind
    program      the workflows: an interpreter of little programs, and a run of several generations
    plan         the programs, from a seed, with the ends they must come to
    effects      what steps really did
    witness      a process that writes down what others did
    tally        what engines counted
    acks         what the client was told
    worker       one worker process
    client       the client process
    batches      the batches that it starts
    insistence   how both get along with a store that is away
    process      how such processes are started, killed and stopped
    supervisor   whom it kills, and when
    outage       when it kills the server of the store
    places       what is special about each store
    evidence     everything that is known at the end
    completion   which calls the journals say are done
    reading      the evidence as checks need it
    checks       what must hold, each check one function
    feature_checks  what must hold for one feature each
    report       what is printed
"""
