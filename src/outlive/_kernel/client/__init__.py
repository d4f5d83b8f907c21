"""The verbs: start, signal, cancel, resume, get, list, history. What the world says to runs goes through here."""
