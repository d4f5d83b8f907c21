"""From what a person gives to a checked document: a text, a file, or a document that code has made."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from outlive._features.flows.document.model import Document, canonical_json, shown_version, version_in
from outlive._features.flows.library.records import StoredDocument
from outlive._garbage_collection import collection_paused
from outlive.errors import ArgumentTypeError
from outlive.errors.document import FlowError, FlowInputError, Problem

if TYPE_CHECKING:
    from outlive._features.flows.document.known_names import Listed
    from outlive._features.flows.document.positions import Positions


class KeptDocument(NamedTuple):
    """A document as the library keeps it."""

    name: str
    digits: str
    """The hash by which it is known."""
    stored: StoredDocument


class ReadDocument(NamedTuple):
    """A document that can run, as far as that can be seen without the code of its steps."""

    document: Document
    text: str
    warnings: tuple[Problem, ...] = ()

    def kept(self) -> KeptDocument:
        """The form in which the library keeps it."""
        canonical = canonical_json(self.document)
        digits = shown_version(version_in(canonical))
        return KeptDocument(self.document.name, digits, StoredDocument(canonical, self.text))


def read_document(
    text: str, *, file: str = "", checks: bool = True, knows_steps: bool = False, listed: Listed | None = None
) -> ReadDocument:
    """Read a text and check it.

    Args:
        listed: what the workers run that will run it; else what this process has.
        checks: whether it has to be able to run; else only its form counts.
        knows_steps: whether this process has the steps that it uses, and what they take is checked too.

    Raises:
        FlowError: something is wrong; all problems, with their lines.
    """
    from outlive._features.flows.document.reading import read
    from outlive._features.flows.document.validating import document_of

    with collection_paused():
        reading = read(text, file)
        document = document_of(reading)
        options: dict[str, Any] = {"knows_steps": knows_steps, "listed": listed}
        warnings = check_document(document, reading.positions, file, **options) if checks else ()
        return ReadDocument(document, text, warnings)


def check_document(
    document: Document,
    positions: Positions | None = None,
    file: str = "",
    *,
    knows_steps: bool = False,
    listed: Listed | None = None,
) -> tuple[Problem, ...]:
    """Warnings about a document that can run.

    Raises:
        FlowError: it cannot run.
    """
    from outlive._features.flows.document.checking import check, refuse
    from outlive._features.flows.document.known_names import NOT_LISTED, known_with
    from outlive._features.flows.flow import FlowWorkflow
    from outlive._features.flows.run.triggers import schedules_in

    # A step that is not known is a warning: workers that begin later may have it.
    warnings = refuse(check(document, known_with(listed or NOT_LISTED), positions), file)
    try:
        flow = FlowWorkflow(document)
        with suppress(FlowInputError):  # The workers have the values of variables, if this process has not.
            schedules_in(document)
        if knows_steps:
            flow.check()
    except FlowError as error:
        problems = error.problems if positions is None else positions.located(error.problems)
        raise FlowError(problems, file) from None
    return tuple(warnings)


def document_given(where: str, given: object, *, checks: bool = True, listed: Listed | None = None) -> ReadDocument:
    """The document that a caller gives to a verb; `listed` as for `read_document`.

    Raises:
        ArgumentTypeError: it is none. FlowError: something is wrong with it.
    """
    from outlive._features.flows.flow import FlowWorkflow

    match given:
        case str():
            return read_document(given, checks=checks, listed=listed)
        case Path():
            return read_document(given.read_text(encoding="utf-8"), file=str(given), checks=checks, listed=listed)
        case FlowWorkflow():
            return ReadDocument(given.document, _text_of(given.document))
        case Document():
            return ReadDocument(given, _text_of(given), check_document(given, listed=listed) if checks else ())
        case _:
            wanted = "give the text of a document, a pathlib.Path to its file, or a flow that was loaded or built"
            raise ArgumentTypeError(where, "document", given, wanted)


def _text_of(document: Document) -> str:
    """A document that has no author's text, as JSON that people can read."""
    return msgspec.json.format(canonical_json(document), indent=2).decode() + "\n"
