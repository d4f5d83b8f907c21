"""Why a run is where it is: a sentence, and what helps as data."""

from __future__ import annotations

from outlive.errors.advice import Advice, in_words


class Why(str):
    """The sentence that `why` says. As text it ends with its advice, as calls in Python; a journal has that text."""

    summary: str
    """The sentence without its advice."""
    advice: tuple[Advice, ...]
    """The verbs that help next."""

    def __new__(cls, summary: str, *advice: Advice) -> Why:
        """A sentence with its advice."""
        why = super().__new__(cls, in_words(summary, advice))
        why.summary, why.advice = summary, advice
        return why

    @classmethod
    def of(cls, *parts: str) -> Why:
        """A sentence of several parts, with the advice of all of them at its end."""
        known = [part if isinstance(part, Why) else cls(part) for part in parts]
        return cls("".join(it.summary for it in known), *(advice for it in known for advice in it.advice))
