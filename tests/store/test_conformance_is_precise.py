"""A planted defect is found by a few tests of the suite, and not because nothing works."""

from functools import partial
from types import ModuleType

import pytest

from outlive._kernel.store.memory import MemoryStore
from outlive_conformance.suite import MemoryFactory, find_failures
from tests.store import (
    test_conformance_catches_bugs,
    test_conformance_catches_bugs_of_cells,
    test_conformance_catches_bugs_of_checkpoints,
    test_conformance_catches_bugs_of_forgetting,
    test_conformance_catches_bugs_of_successors,
)

FILES = (
    test_conformance_catches_bugs,
    test_conformance_catches_bugs_of_cells,
    test_conformance_catches_bugs_of_checkpoints,
    test_conformance_catches_bugs_of_forgetting,
    test_conformance_catches_bugs_of_successors,
)
FAILURES_MAX = 60
"""Of several hundred tests."""


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.__name__.rpartition(".")[2])
def test_most_tests_do_not_mind_a_defect(file: ModuleType) -> None:
    """So that a failure says what is wrong."""
    defects: list[type[MemoryStore]] = file.Defective.__subclasses__()
    failures = {defect.__name__: len(find_failures(partial(MemoryFactory, defect))) for defect in defects}

    assert {} == {name: number for name, number in failures.items() if not 0 < number < FAILURES_MAX}
