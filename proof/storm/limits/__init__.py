"""A storm over queues with limits, and the proof that at no instant more was under way than they allow.

    guests       the queues, and what the runs in them do
    worker       one worker process
    client       keeps all queues full
    holding      who was in which queue when, by what steps wrote down and who owned what
    checks       what must hold

A worker that is frozen in a step for longer than its lease goes on with the step when it thaws. By then another worker
may have the run, or the run may have ended and given its slot to another one. No store can take back what runs already;
it can only refuse what comes of it. So a step counts until another worker claims its run.
"""
