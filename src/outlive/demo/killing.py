"""Killing a worker that is provably in the middle of a charge."""

from __future__ import annotations

from outlive.demo.fleet import Member
from outlive.demo.world import Line, Witness


def kill_while_it_charges(worker: Member, witness: Witness) -> list[Line]:
    """Freeze the worker, look whether it charges a customer, and only then kill it; its charges, if it was killed."""
    worker.freeze()
    charging = charges_of(worker, witness)
    if charging:
        worker.kill()
    else:
        worker.thaw()
    return charging


def charges_of(worker: Member, witness: Witness) -> list[Line]:
    """The charges that a worker has begun and not ended."""
    witness.look()
    return [line for line in witness.under_way("charge") if line.pid == worker.pid]
