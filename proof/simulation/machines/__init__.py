"""Runs of the simulator that are state machines.

A run is a list of legs (`legs`), drawn with the plan, and the argument of one of a few machines (`play`). Each machine
can do every kind of leg; they differ in how long their journals may grow. What must come of a run follows from its
legs (`course`). What its handlers did to the world is written down by them (`effects`), and the judge (`judge`) holds
it against the course, the journal and the end of the run:

* a run that was rolled back holds nothing, one that came to an exit holds everything that it says it has;
* whatever is done is done under one idempotency key, in the order of the legs, and undone newest first;
* the states in the journal, with what snapshots have put away, are those of the course;
* a journal does not grow beyond its snapshots, and what a snapshot says of its run is what the run was;
* every call behind a shared limit was counted, and what was counted fits into the limit (`limits`).
"""
