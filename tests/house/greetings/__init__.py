"""A feature that only a test adds: people greet a store, and a service of its workers answers."""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="greetings",
    in_engine="tests.house.greetings.in_engine",
    operations=("tests.house.greetings.operations",),
    commands={
        "greetings": CliCommand("Operate", "Show the greetings of a store.", "tests.house.greetings.commands"),
    },
)
