"""The values that travel between web, workflows, tables and the bank."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Order:
    """What a customer wants."""

    customer: str
    item: str
    cents: int


@dataclass(frozen=True)
class Credit:
    """The form that a person fills in who gives credit."""

    note: str = ""


@dataclass(frozen=True)
class Settlement:
    """The word of the bank that a payment has arrived."""

    number: str
    charge: str
    cents: int


@dataclass(frozen=True)
class Receipt:
    """The end of a checkout that went well."""

    number: str
    charge: str
    cents: int
    credit_by: str | None = None
    """The person who gave credit, if one was asked."""


@dataclass(frozen=True)
class Row:
    """One line of a file of old invoices."""

    file: str
    line: int
    cents: int


class DeclinedError(Exception):
    """The bank does not charge this customer."""


class CreditRefusedError(Exception):
    """A person said no."""
