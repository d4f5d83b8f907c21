"""Whether new code can go on with the open runs of a store: `outlive check-deploy`."""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="deploys",
    operations=("outlive._features.deploys.operations",),
    commands={
        "check-deploy": CliCommand(
            "Develop",
            "Replay the open runs of a store with new code, before it is deployed.",
            "outlive._features.deploys.commands",
        ),
    },
)
