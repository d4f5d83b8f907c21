"""Every class of ours by its name, for answers of a server: also classes that programs do not name."""

from __future__ import annotations

from outlive.errors import base, flow, key, outside, program, run, step, store
from outlive.errors.base import OutliveError

ERRORS: dict[str, type[OutliveError]] = {
    name: it
    for room in (base, flow, key, outside, program, run, step, store)
    for name, it in vars(room).items()
    if isinstance(it, type) and issubclass(it, OutliveError)
}
