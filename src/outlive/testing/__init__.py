"""The tools with which programs test their workflows.

    from outlive.testing import TestEngine, crash_everywhere, replay

`TestEngine` lets hours pass in a moment, `crash_everywhere` kills a workflow at every write, and `replay` runs recorded
histories with the code of today.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from outlive.testing.crash import CrashReport, SurvivalError, Survivor, crash_everywhere
    from outlive.testing.deploy import DeployReport, check_deploy
    from outlive.testing.engine import TestEngine
    from outlive.testing.recording import RecordingObserver
    from outlive.testing.replaying import HistoryMismatchError, replay
    from outlive.testing.skip_clock import SkipClock

__all__ = [
    "CrashReport",
    "DeployReport",
    "HistoryMismatchError",
    "RecordingObserver",
    "SkipClock",
    "SurvivalError",
    "Survivor",
    "TestEngine",
    "check_deploy",
    "crash_everywhere",
    "replay",
]

_HOMES = {
    "CrashReport": "crash",
    "DeployReport": "deploy",
    "HistoryMismatchError": "replaying",
    "RecordingObserver": "recording",
    "SkipClock": "skip_clock",
    "SurvivalError": "crash",
    "Survivor": "crash",
    "TestEngine": "engine",
    "check_deploy": "deploy",
    "crash_everywhere": "crash",
    "replay": "replaying",
}


def __getattr__(name: str) -> Any:
    """Load each when it is first asked for: a program that only kills workers needs none of them."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
