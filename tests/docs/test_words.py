"""The page of words has every act, in each way in which it is there, or the reason why not."""

from __future__ import annotations

import outlive
from outlive.http.operation import OPERATIONS
from tests.docs import words
from tests.docs.page import DOCS


def test_every_verb_operation_and_command_is_on_the_page() -> None:
    """Each in the row of its act."""
    page = (DOCS / words.PATH).read_text("utf-8")
    wanted = [*words.verbs(), *OPERATIONS, *(f"outlive {name}" for name in words.commands())]

    assert len(wanted) > 300
    assert [name for name in wanted if f"`{name}`" not in page] == []


def test_an_act_that_is_there_in_one_way_only_has_a_reason() -> None:
    """A reason goes when the act is there in a second way."""
    alone = {act: it for act, it in words.acts().items() if words.is_alone(it)}

    assert [act for act, it in alone.items() if not words.reason_of(act, it)] == []
    used = {words.reason_of(act, it) for act, it in alone.items()}
    assert [name for name, reason in words.ALONE.items() if reason not in used] == []


def test_the_tables_of_words_name_what_is_there() -> None:
    """A verb, a command and a form that is gone goes from them too."""
    forms = [form for form in words.FORMS if not form.startswith("outlive ")]
    called = {form.partition("(")[0] for form in forms}

    assert set(words.PYTHON) <= set(words.verbs())
    assert set(words.COMMANDS) <= set(words.commands())
    assert [form for form in words.FORMS if form not in forms and words.unknown_in(form.removeprefix("outlive "))] == []
    assert {name for name in called if name not in words.verbs() and not _is_there(name)} == set()


def _is_there(name: str) -> bool:
    space, _, rest = name.removeprefix("outlive.").partition(".")
    return hasattr(getattr(outlive, space, None), rest)
