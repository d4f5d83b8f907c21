"""The conformance suite is whole: each test says what it shows, and none hides another."""

import inspect

from outlive_conformance.suite import FACETS, LocalStoreConformance, StoreConformance
from outlive_conformance.suite.facet import Facet


def test_every_test_states_its_behaviour() -> None:
    """In at least one sentence."""
    tests = [it for it in inspect.getmembers(StoreConformance, inspect.isfunction) if it[0].startswith("test_")]

    assert [name for name, test in tests if not (test.__doc__ or "").partition("[")[0].strip()] == []


def test_no_facet_hides_a_test_of_another() -> None:
    """The suite is one class, so two facets with a test of the same name would run only one of them."""
    facets = [
        base
        for base in StoreConformance.__mro__
        if issubclass(base, Facet) and base not in (StoreConformance, LocalStoreConformance)
    ]
    names = [name for facet in facets for name in vars(facet) if name.startswith("test_")]

    assert sorted(names) == sorted(set(names))
    assert {facet.__module__.rpartition(".")[2] for facet in facets} == {*FACETS, "facet"}
