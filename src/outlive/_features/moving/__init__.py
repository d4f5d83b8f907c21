"""Taking runs and stores elsewhere: exports, imports, moves and backups."""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="moving",
    in_engine="outlive._features.moving.in_engine",
    commands={
        "backup": CliCommand(
            "Store",
            "Copy a store into a file while workers go on, and prove that the copy is whole.",
            "outlive._features.moving.backup_commands",
        ),
        "move": CliCommand(
            "Store",
            "Carry a store over into another one, with the runs in flight.",
            "outlive._features.moving.commands",
        ),
    },
)
