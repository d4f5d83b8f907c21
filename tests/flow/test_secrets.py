"""References to secrets, their values, and what is left of them in what comes out of a step."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from outlive._features.flows.outside import settings
from outlive._features.flows.outside.secrets import BLOTTED, Revealed, check_data, find_value, granting, reference_to
from outlive._features.flows.outside.settings import Settings
from outlive.errors import StepFailedError
from outlive.errors.outside import HttpStatusError, SecretError
from outlive.flow import reveal

TOKEN = reference_to("token")
VALUE = 's3cr+t/with "odd" ånd långa'


@pytest.fixture(autouse=True)
def _values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUTLIVE_SECRET_TOKEN", VALUE)
    monkeypatch.setenv("OWN_NAME", "another secret")
    monkeypatch.setenv("OUTLIVE_SECRET_SHORT", "abc")


def test_where_values_come_from(tmp_path: Path) -> None:
    """The environment, by the name of the document or by its own; a file; a folder with a file for each."""
    assert find_value("token") == VALUE
    assert find_value("token", "OWN_NAME") == "another secret"
    file, folder = tmp_path / "secrets.toml", tmp_path / "run"
    file.write_text('token = "of the file"\nnumber = 7\n', "utf-8")
    folder.mkdir()
    (folder / "token").write_text("of the folder\n", "utf-8")
    for place, value in ((file, "of the file"), (folder, "of the folder")):
        with settings.using(Settings(secrets=str(place))):
            assert find_value("token") == value
            assert find_value("other", "OWN_NAME") == "another secret"
    with settings.using(Settings(secrets=str(file))), pytest.raises(SecretError, match="is not text"):
        find_value("number")
    file.write_text('token = "unclosed', "utf-8")
    with settings.using(Settings(secrets=str(file))), pytest.raises(SecretError) as caught:
        find_value("token")
    assert "unclosed" not in str(caught.value)


def test_a_secret_without_a_usable_value() -> None:
    """Says where it is looked for, and never what it is."""
    with settings.using(Settings()):
        with pytest.raises(SecretError, match="set it as the environment variable OUTLIVE_SECRET_MISSING"):
            find_value("missing")
        with pytest.raises(SecretError, match="fewer than 4 characters") as caught:
            find_value("short")
    assert "abc" not in str(caught.value)


def test_a_step_resolves_only_what_its_document_names() -> None:
    """Whole or as a part of text, in keys too; another name is refused."""
    revealed = Revealed([TOKEN], to=None)
    token = reference_to("token")

    assert revealed.resolve({"a": [token, f"Bearer {token}!", 1, None], token: True}) == {
        "a": [VALUE, f"Bearer {VALUE}!", 1, None],
        VALUE: True,
    }
    with pytest.raises(SecretError, match="not named in the `with`"):
        revealed.resolve(f"x{reference_to('other')}")


def test_data_cannot_hold_a_reference() -> None:
    """Nor a part of which expressions could make one."""
    check_data({"a": ["plain", 1, None, {"b": True}]}, "input")
    for bad in (reference_to("token"), reference_to("token")[:3], "x\ufdd1", {"a": [{"\ufdd0": 1}]}):
        with pytest.raises(SecretError, match="is named by input"):
            check_data(bad, "input")


def test_values_are_blotted_out_in_every_form_of_a_request() -> None:
    """The value of a secret is blotted out as text, in a URL, in a form, in JSON, and in Base64 with anything around
    it."""
    revealed = Revealed([TOKEN], to=None)
    revealed.value_of(TOKEN)
    packed = [
        base64.b64encode(f"{before}{VALUE}{after}".encode()).decode()
        for before in ("", "u", "us:")
        for after in ("", "x", "xy")
    ]
    forms = [
        VALUE,
        "s3cr%2Bt%2Fwith%20%22odd%22%20%C3%A5nd%20l%C3%A5nga",
        "s3cr%2Bt%2Fwith+%22odd%22+%C3%A5nd+l%C3%A5nga",
        's3cr+t/with \\"odd\\" ånd långa',
        *packed,
    ]
    for form in forms:
        blotted = revealed.blot({"text": f"got {form}.", form: [form]})
        assert BLOTTED in blotted["text"], form
        assert form not in str(blotted)
    inner = base64.b64encode(VALUE.encode()).decode()[4:-4]
    assert all(inner not in str(revealed.blot(each)) for each in packed[:3])


def test_text_that_was_cut_does_not_end_with_half_of_a_value() -> None:
    """The end of it goes too."""
    revealed = Revealed([TOKEN], to=None)
    assert revealed.blot_cut("x" * 10, is_cut=True) == "x" * 10
    revealed.value_of(TOKEN)

    assert VALUE[:5] not in revealed.blot_cut("x" * 100 + VALUE[:20], is_cut=True)
    assert revealed.blot_cut(f"a{VALUE}b", is_cut=False) == f"a{BLOTTED}b"


class Picky(Exception):
    """An exception whose text is not made of its arguments."""

    def __str__(self) -> str:
        return f"picky {VALUE}"


def test_errors_are_blotted_and_stay_what_they_are() -> None:
    """The class, the attributes and so the retry policy; only one that cannot be changed becomes another one."""

    def fail(kind: str) -> None:
        value = reveal(reference_to("token"))
        if kind == "picky":
            raise Picky
        if kind == "status":
            raise HttpStatusError(503, request=f"GET /{value}", excerpt=value, retry_after=1)
        try:
            raise ValueError(value)
        except ValueError as error:
            raise ConnectionError(f"failed: {value}") from error

    step = granting(fail, [TOKEN], to="own", is_async=False)
    with pytest.raises(ConnectionError, match=r"failed: \[REDACTED\]") as caught:
        step("cause")
    assert caught.value.__cause__ is None
    with pytest.raises(HttpStatusError) as status:
        step("status")
    assert (status.value.status, status.value.excerpt, status.value.retry_after) == (503, BLOTTED, 1)
    with pytest.raises(StepFailedError, match=r"picky \[REDACTED\]") as picky:
        step("picky")
    assert picky.value.type_name.endswith("Picky")


async def test_a_step_of_a_user_reveals_the_secrets_that_its_flow_gave_it() -> None:
    """A step reveals the secrets that its flow gave it and no others, not outside a flow, and its result is blotted."""

    async def use(token: str) -> list[str]:
        return [str(len(reveal(token))), reveal(token), reveal("plain")]

    step = granting(use, [TOKEN], to="own", is_async=True)
    assert await step(reference_to("token")) == [str(len(VALUE)), BLOTTED, "plain"]
    with pytest.raises(SecretError, match="not named"):
        await step(reference_to("other"))
    with pytest.raises(SecretError, match="not named"):
        await use(reference_to("token"))
