"""Bad requests beside good ones, to a real server: a sample of `make malformed`."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from outlive.http.operation import OPERATIONS
from proof.http import costs
from proof.http.hostile_documents import KINDS
from proof.http.malformed import prove


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_bad_requests_have_clear_answers_and_other_clients_are_served() -> None:
    """400 to 499 with a reason, and the memory stays. (The rate that others keep is for `make malformed` on a machine
    that has nothing else to do.)"""
    report = prove(requests=300, seed=1)

    assert [] == report.findings
    assert not [status for status in report.answers if status.startswith("5")]


def test_every_operation_gets_hostile_requests() -> None:
    """Every operation gets hostile bodies and parameters, and each that reads a document gets hostile documents.
    [S35]"""
    sent = {name: list(costs.requests_for(it, {}, length=200)) for name, it in OPERATIONS.items()}
    bodies = {name for name, requests in sent.items() if any(each.body for each in requests)}
    documents = {name: sum(each.is_document for each in requests) for name, requests in sent.items()}

    assert bodies == {name for name, it in OPERATIONS.items() if it.method != "GET"}
    assert {name for name, it in OPERATIONS.items() if it.query is not None} <= {
        name for name, requests in sent.items() if any(each.query for each in requests)
    }
    assert {name for name, count in documents.items() if count} == {"flows.apply", "flows.check", "flows.save_draft"}
    assert set(documents.values()) == {0, len(KINDS)}


def test_every_operation_with_filters_gets_dear_ones() -> None:
    """Every operation that finds runs by filters gets filters that many runs pass and for which it finds none. [S35]"""
    searched = {name for name, it in OPERATIONS.items() if list(costs.searches_for(it))}
    bulk = {f"bulk.{verb}" for verb in ("cancel", "pause", "purge", "resume", "retry", "start", "start_purge")}

    assert searched == bulk | {"approvals.list", "runs.count", "runs.count_by", "runs.follow_list", "runs.list"}


def test_a_request_that_is_dear_for_its_size_is_a_finding() -> None:
    """Or one that keeps all others waiting for long, or that is not answered. [S35]"""
    cost = costs.Cost("flows.check", "a document with maps", 1_000, 200, 0.5, 1.0, 0.1)
    turn_seconds = cost.allowed_turn_seconds

    assert cost.is_fit
    assert not replace(cost, seconds=1.1).is_fit
    assert not replace(cost, turn_seconds=turn_seconds + 0.01).is_fit
    assert not replace(cost, status=599).is_fit
    assert str(cost) == (
        "flows.check: a document with maps: 200, 1,000 bytes cost 500 ms, 1000 ms are the most, 100 ms of them in one "
        f"turn, {turn_seconds * 1000:.0f} may be"
    )


def test_hostile_requests_cost_a_server_little() -> None:
    """A sample of what `make malformed` measures: the time that the process of a server has used. [S35]"""
    found = costs.prove(["approvals.use_link", "flows.check", "runs.list"], length=2_000, runs=500)

    assert [] == [str(each) for each in found if not each.is_fit]
    assert len(found) > 100
    assert {200} == {each.status for each in found if each.kind == "filters that many runs pass, each"}
