"""`outlive.current_engine`: the engine that runs a step."""

from __future__ import annotations

from typing import cast

from outlive._kernel.define.in_step import CURRENT_STEP
from outlive.engine.engine import Engine
from outlive.errors import ConfigurationError
from outlive.errors.program import NotInRunError


def current_engine() -> Engine:
    """The engine that runs this step; a sync step uses its `sync`.

    Raises:
        NotInRunError: it is called outside a step. ConfigurationError: the step runs in a process of its own.
    """
    step = CURRENT_STEP.get(None)
    if step is None:
        raise NotInRunError("current_engine", "a step")
    if step.engine is None:
        raise ConfigurationError(
            "no engine runs in the process of a step with process=True; return what it found, and let another step use "
            "outlive.current_engine()"
        )
    return cast(Engine, step.engine)
