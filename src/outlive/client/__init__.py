"""The verbs: start, signal, cancel, resume, get, list, history. Everything that the world says to runs goes through here."""
