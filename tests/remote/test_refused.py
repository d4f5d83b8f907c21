"""An error of a server is the same as that of an engine in this process: its class, its code, its facts, its advice."""

from __future__ import annotations

import msgspec
import pytest

import outlive
from outlive.errors import InvalidArgumentError, OutliveError, ServerError, StoreUnavailableError
from outlive.errors.base import facts_of
from outlive.http.problem import ProblemBody, problem_of, status_of
from outlive.remote.refusal import raise_refusal
from outlive.remote.transport import Answer
from tests.http.problems import EVERY, example_of

IN_AN_ANSWER = {
    "SignalsRefusedError": "it comes in parts: a problem in the place of each signal",
    "StartsRefusedError": "it comes in parts: a problem in the place of each start",
}
CROSSES = {name: kind for name, kind in EVERY.items() if (status_of(kind) or 500) < 500 and name not in IN_AN_ANSWER}
PUBLIC = {*outlive.errors.__all__, *outlive.flow.__all__}


def crossed(error: OutliveError, operation: str = "runs.list") -> OutliveError:
    """The error that a program gets whose server has raised this one."""
    problem = problem_of(error)
    with pytest.raises(OutliveError) as caught:
        raise_refusal(Answer(problem.status, msgspec.json.encode(problem.body)), operation)
    return caught.value


@pytest.mark.parametrize("kind", CROSSES.values(), ids=CROSSES)
def test_an_error_that_crosses_is_the_same(kind: type[OutliveError]) -> None:
    """A program catches the same class with the same attributes from an engine and from a connection."""
    error = example_of(kind)
    found = crossed(error)

    assert type(found) is kind
    assert found.code == error.code
    assert facts_of(found) == facts_of(error)
    assert found.advice == error.advice
    in_json = isinstance(error, InvalidArgumentError)  # The server says it with the values of JSON.
    assert str(found) == (problem_of(error).body.detail if in_json else str(error))


@pytest.mark.parametrize("kind", CROSSES.values(), ids=CROSSES)
def test_a_problem_names_a_class_that_a_program_can_catch(kind: type[OutliveError]) -> None:
    """The name in a problem is public, and the class below it is in the code."""
    body = problem_of(example_of(kind)).body

    assert body.error in PUBLIC
    assert issubclass(kind, EVERY[body.error])
    assert body.type == f"urn:outlive:error:{kind.code}"


def test_an_error_of_a_later_release_is_of_the_class_above_it() -> None:
    """A code that is not known here keeps its public class, its code and its facts."""
    body = msgspec.structs.replace(problem_of(example_of(EVERY["QueueNotFoundError"])).body, code="nest_not_found")
    with pytest.raises(outlive.errors.NotFoundError) as caught:
        raise_refusal(Answer(404, msgspec.json.encode(body)))

    assert (type(caught.value), caught.value.code) == (outlive.errors.NotFoundError, "nest_not_found")
    assert vars(caught.value)["near"] == "some near"


def test_a_value_that_was_not_short_is_not_repeated() -> None:
    """An argument comes back without a value that is large or has parts: it may hold what is not to be seen."""
    for given in ({"password": "x"}, ["x"], "x" * 1_000, object()):
        found = crossed(InvalidArgumentError("engine.start", "arguments", given, "give less"), "runs.start")
        assert isinstance(found, InvalidArgumentError)
        assert (found.where, found.name, found.given, found.wanted) == ("engine.start", "arguments", None, "give less")


def test_a_store_that_is_away_shows_nothing_of_its_place() -> None:
    """The address of a store and the reason stay on the server; the error names the run that was perhaps started."""
    found = crossed(outlive.errors.CommitUnknownError("/var/lib/secret", "SELECT", run_id="order-7"))

    assert isinstance(found, StoreUnavailableError)
    assert (found.place, vars(found)["run_id"]) == ("the server", "order-7")
    assert "secret" not in str(facts_of(found))


def test_page_of_another_program_is_shown_from_its_beginning() -> None:
    """The first 200 characters, in one line."""
    with pytest.raises(ServerError) as caught:
        raise_refusal(Answer(404, b"<p>\n " + b"x" * 1_000))

    assert f"<p> {'x' * 195}" in str(caught.value)
    assert "x" * 196 not in str(caught.value)


def test_a_refusal_of_the_server_itself_has_its_code() -> None:
    """An error that no engine raises is a ServerError, also if its code looks like that of another class."""
    body = ProblemBody(
        type="", title="Not Found", status=404, detail="nothing", error="ServerError", code="not_found", next="Look."
    )
    with pytest.raises(ServerError) as caught:
        raise_refusal(Answer(404, msgspec.json.encode(body)))

    assert (caught.value.status, caught.value.code, caught.value.next) == (404, "not_found", "Look.")
