"""Random expressions and documents of flows: none may crash, hang or need much memory, and CEL must agree.

`grammar` writes expressions that mean something, `nonsense` what is broken, `documents` whole flows; `oracle` asks an
independent implementation of CEL. Every input follows from a seed and a number, so each can be had again.
"""
