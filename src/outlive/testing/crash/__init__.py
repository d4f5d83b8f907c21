"""`crash_everywhere`: a workflow dies at every commit, and must survive each time.

The workflow runs once without faults; that tells its commits and its end. Then it runs again for each commit, and the
process "dies" there: right before the commit is durable, or right after it is and before anybody has heard of it. All
that was not committed is lost, the tasks of the dead process are torn down, and a new engine on the same store goes on.
For short workflows it dies a second time while it recovers. All this in one process, on a clock that skips.

What is checked, each time:

* every event that the store had acknowledged is still there, or a snapshot stands for it;
* the store is whole (`outlive.testing.fsck`), at the crash and at the end;
* the code replays what the journal had at the crash, and no step had begun that the journal did not ask for;
* no step runs again whose outcome was in the journal, and no attempt that was;
* every run ends as it did without a crash: same status, same result or failure; none is parked, none is left running.

What this is not: a kill. The store is trusted to write what it says (`make kill` and the conformance suite
check that), and a step that is cut off sees a cancellation where a killed process would see nothing.
"""

from outlive.testing.crash.everywhere import crash_everywhere
from outlive.testing.crash.report import CrashReport, SurvivalError, Survivor

__all__ = ["CrashReport", "SurvivalError", "Survivor", "crash_everywhere"]
