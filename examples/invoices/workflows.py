"""What an ordinary worker runs: `outlive worker invoices.workflows`."""

from invoices.bookkeeping import close_books, imports, take_payment
from invoices.checkout import checkout
from invoices.tables import import_row

__all__ = ["checkout", "close_books", "import_row", "imports", "take_payment"]
