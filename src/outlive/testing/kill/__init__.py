"""Workers that are killed again and again, and the proof that nothing is lost or done twice.

    python -m outlive.testing.kill --store sqlite --kills 200 --seed 7

Several worker processes share one store. A client process starts runs, sends signals and cancels, and writes down what
it was told (`acks`); every step writes down what it really did (`effects`). A supervisor kills workers and client with
-9 at random moments, also while they start and recover, and starts them again. Then everything may finish, and the
checks compare four sources: the plan, what the client was told, what was done, and the journals.

    program      the workflow: an interpreter of little programs
    plan         the programs, from a seed, with the ends they must come to
    effects      what steps really did
    acks         what the client was told
    worker       one worker process
    client       the client process
    process      how such processes are started, killed and stopped
    supervisor   whom it kills, and when
    places       what is special about each store
    evidence     everything that is known at the end
    completion   which calls the journals say are done
    checks       what must hold, each check one function
    report       what is printed
"""
