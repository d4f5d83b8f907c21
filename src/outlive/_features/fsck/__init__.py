"""Proves that a store is whole: every row of every journal, and everything else against what the journals say.

The run rows are a fold of the journals (`outlive._kernel.journal.fold`). Here that is proved from outside, with the
same `Fold` that the workers use and none of their code. One liberty is allowed: a message that waits in the inbox may
have moved the root's `wake_at` forward, because that is how it asks to be read.

The store may be in use. What hangs on a tree is read in one moment, and its journal up to where it ended at that
moment, so that the two can be compared exactly. A tree that changed while something seemed wrong is looked at again;
only what stays wrong is a problem.

    reading        one journal from its first event on: checksums, gaps, and what its rows must be
    tree_problems  what is wrong with a tree
    checker        all trees, checkpoints and schedules, a few at a time; repairs write derived rows and never a journal

Not everything can be known. A message has no checksum: what it says can be damaged in a way that no check sees.
"""

from outlive._kernel.feature import CliCommand, Feature

FEATURE = Feature(
    name="fsck",
    commands={
        "fsck": CliCommand("Store", "Prove that a store is whole.", "outlive._features.fsck.commands"),
    },
)
