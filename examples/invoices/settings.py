"""What differs from place to place: where everything is, and how long things may take."""

import os

WEB = os.environ.get("INVOICES_WEB", "http://127.0.0.1:8000")
BANK = os.environ.get("INVOICES_BANK", "http://127.0.0.1:8101")
MAILER = os.environ.get("INVOICES_MAILER", "http://127.0.0.1:8102")
HOOK_KEY = os.environ.get("INVOICES_HOOK_KEY", "whsec_aW52b2ljZXMtZXhhbXBsZS1rZXk=")
"""The bank signs with it what it sends us."""
CREDIT_FROM_CENTS = 100_000
"""From this amount on a person decides."""
DECIDE_SECONDS = float(os.environ.get("INVOICES_DECIDE_SECONDS", "172800"))
"""How long a person may take for it: two days."""
SETTLE_SECONDS = float(os.environ.get("INVOICES_SETTLE_SECONDS", "259200"))
"""How long we wait for the word of the bank that a payment is settled: three days."""
MAILS_PER_SECOND = int(os.environ.get("INVOICES_MAILS_PER_SECOND", "20"))
"""What the mailer takes from us, all workers together."""
CLOSE_SECONDS = int(os.environ.get("INVOICES_CLOSE_SECONDS", "60"))
"""How often the books are closed."""
