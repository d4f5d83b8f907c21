"""Signatures and tokens of webhooks, and what a refusal says of them."""

from __future__ import annotations

import hashlib
import hmac

import pytest

from outlive.http.exchange import DIGITS_MAX
from outlive.http.problem import Problem
from outlive.http.signature import (
    GITHUB_SIGNATURE,
    WINDOW_SECONDS,
    check_signature,
    check_signed,
    check_token,
    signed_headers,
)

KEY = "a key of some length"
NOW = 1_700_000_000
BODY = b'{"order": 7}'


def test_a_request_without_a_token_is_asked_for_one() -> None:
    """Its sender reads how a token is given, and not that the token is wrong."""
    for headers in ({}, {"authorization": "Basic YTpi"}, {"authorization": "Bearer "}):
        with pytest.raises(Problem, match="give the token: Authorization: Bearer"):
            check_token(KEY, headers)


@pytest.mark.parametrize("away", [-WINDOW_SECONDS, 0, WINDOW_SECONDS])
def test_a_signature_counts_to_the_end_of_its_time(away: int) -> None:
    """It is taken at both ends of the window, and refused a second behind them."""
    headers = signed_headers(KEY, "msg-1", BODY, now_seconds=NOW)

    assert check_signature(KEY, headers, BODY, now_seconds=NOW + away) == "msg-1"
    if away:
        with pytest.raises(Problem, match="more than 5 minutes away"):
            check_signature(KEY, headers, BODY, now_seconds=NOW + away + (1 if away > 0 else -1))


def test_a_time_with_as_many_digits_as_a_number_may_have_is_read() -> None:
    """It is far away; with one digit more it is not a time at all."""
    headers = signed_headers(KEY, "msg-1", BODY, now_seconds=NOW)

    with pytest.raises(Problem, match="minutes away"):
        check_signed(headers | {"webhook-timestamp": "9" * DIGITS_MAX}, now_seconds=NOW)
    with pytest.raises(Problem, match="whole seconds since 1970"):
        check_signed(headers | {"webhook-timestamp": "9" * (DIGITS_MAX + 1)}, now_seconds=NOW)


def test_a_signature_of_another_layout_is_named_if_there_is_one() -> None:
    """A sender that signs in the other layout reads so, and a sender that does not sign is not sent there."""
    digest = hmac.new(KEY.encode(), BODY, hashlib.sha256).hexdigest()

    with pytest.raises(Problem, match=f"it has no webhook-signature \\({GITHUB_SIGNATURE} is of another layout"):
        check_signed({GITHUB_SIGNATURE: f"sha256={digest}"}, now_seconds=NOW)
    with pytest.raises(Problem, match=r"it has no webhook-signature$"):
        check_signed({}, now_seconds=NOW)


def test_a_signature_is_checked_whole_by_one_call() -> None:
    """A caller of `check_signature` alone need not look at the time and the headers before."""
    with pytest.raises(Problem, match=f"it has no {GITHUB_SIGNATURE}"):
        check_signature(KEY, {}, BODY, now_seconds=NOW, layout="github")
