"""The dashboard: static ES modules that the server of the HTTP API hands out, and that use nothing but this API.

There is no build step: what is in `static` is what a browser runs. `docs/internals/dashboard.md` says how a view is
written; decision 0060 says why it is made like this.
"""

from outlive.dashboard.files import pages

__all__ = ["pages"]
