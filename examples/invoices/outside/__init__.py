"""The outside world of the example: a bank and a mailer, each a server on loopback with a ledger of its own."""
