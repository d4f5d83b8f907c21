"""Documents of other systems, as flows: what can be carried over, and what cannot, each with its place.

`Imported.yaml` writes the document; the problems are what a person has to do by hand.
"""

from __future__ import annotations

from outlive._features.flows.document.positions import Positions
from outlive._features.flows.document.reading import read
from outlive._features.flows.document.validating import misfits
from outlive._features.flows.other_systems.flowbot import from_flowbot, is_flowbot, shape_of_flowbot
from outlive._features.flows.other_systems.imported import Imported
from outlive._features.flows.other_systems.stepflow import SHAPE as STEPFLOW_SHAPE
from outlive._features.flows.other_systems.stepflow import from_stepflow, is_stepflow
from outlive._features.flows.other_systems.stepflow_mocks import add_mocks
from outlive.errors.document import FlowError, Problem, placed


def import_document(text: str | bytes, file: str = "", *, config: str | bytes | None = None) -> Imported:
    """The flow in a document of Stepflow or Flowbot.

    Args:
        config: Stepflow's configuration (`stepflow-config.yml`): the answers of its mock plugins become `mocks` of the
            tests.

    Raises:
        FlowError: it is not YAML, or a document of neither.
    """
    reading = read(text, file)
    data = reading.data
    if isinstance(data, dict) and is_stepflow(data):
        shape, make = STEPFLOW_SHAPE, from_stepflow
    elif isinstance(data, dict) and is_flowbot(data):
        shape, make = shape_of_flowbot(data), from_flowbot
    else:
        message = (
            "this is a document of neither Stepflow (`steps` with a `component` each) nor Flowbot (`steps` with a "
        )
        problem = Problem(code="unknown-format", message=f"{message}`capability` each, or `tasks`)")
        raise FlowError([placed(problem, 1, 1)], file)
    if wrong := list(misfits(data, shape)):
        raise FlowError(located(wrong, reading.positions), file)
    imported = make(data)
    if config is not None:
        add_mocks(imported, data, config)
    imported.problems = located(imported.problems, reading.positions)
    return imported


def located(problems: list[Problem], positions: Positions) -> list[Problem]:
    """Problems with their places in the document that was imported, in its order."""
    return sorted(positions.located(problems), key=lambda each: (each.line, each.column))
