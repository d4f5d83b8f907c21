"""The features, in the order in which workers run their parts and `outlive --help` lists their commands."""

from outlive._features.approvals import FEATURE as APPROVALS
from outlive._features.batches import FEATURE as BATCHES
from outlive._features.bulk import FEATURE as BULK
from outlive._features.checkpoints import FEATURE as CHECKPOINTS
from outlive._features.deploys import FEATURE as DEPLOYS
from outlive._features.events import FEATURE as EVENTS
from outlive._features.flows import FEATURE as FLOWS
from outlive._features.fsck import FEATURE as FSCK
from outlive._features.machines import FEATURE as MACHINES
from outlive._features.moving import FEATURE as MOVING
from outlive._features.namespaces import FEATURE as NAMESPACES
from outlive._features.promises import FEATURE as PROMISES
from outlive._features.queues import FEATURE as QUEUES
from outlive._features.retention import FEATURE as RETENTION
from outlive._features.runs import FEATURE as RUNS
from outlive._features.schedules import FEATURE as SCHEDULES
from outlive._features.security import FEATURE as SECURITY
from outlive._features.tasks import FEATURE as TASKS
from outlive._kernel.feature import Feature

FEATURES: tuple[Feature, ...] = (
    RUNS,
    APPROVALS,
    PROMISES,
    BATCHES,
    BULK,
    QUEUES,
    SCHEDULES,
    EVENTS,
    MACHINES,
    FLOWS,
    TASKS,
    CHECKPOINTS,
    RETENTION,
    MOVING,
    DEPLOYS,
    FSCK,
    SECURITY,
    NAMESPACES,
)
