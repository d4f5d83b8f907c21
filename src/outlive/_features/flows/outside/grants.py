"""Where a secret may go: what the operator says of it in the settings.

A document names a secret and says where it is sent, and documents are data that many people may change. So the operator
says to which servers requests take it, which steps and programs get it, and which flows may name it. A worker looks at
that when the value is used, and at each hop of a request: after everything was rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from outlive._features.flows.outside.allowed_hosts import PORTS, Target
from outlive.errors.outside import SecretError

_PLACE = re.compile(r"(?:(https?)://)?(\[[0-9a-f:]+\]|(?:\*\.)?[a-z0-9_.-]+)(?::([0-9]{1,5}))?")


@dataclass(frozen=True, slots=True)
class Place:
    """A server, or all below a name."""

    scheme: str
    host: str
    """Or what stands behind `*` of a name like `*.corp.example`, with its dot."""
    port: int

    def has(self, target: Target) -> bool:
        """Whether a request to this target goes there."""
        if (target.scheme, target.port) != (self.scheme, self.port):
            return False
        return target.host.endswith(self.host) if self.host.startswith(".") else target.host == self.host


def place_of(text: str) -> Place:
    """The place that a setting names: `api.example.com`, `*.corp.example`, `box:8443`, all by TLS, or
    `http://box:8080`.

    Raises:
        ValueError: it is not a server.
    """
    found = _PLACE.fullmatch(text.lower())
    if found is None:
        raise ValueError(
            f"{text!r} is not a server: write api.example.com, *.corp.example, box:8443 or http://box:8080"
        )
    scheme = found[1] or "https"
    return Place(scheme, found[2].removeprefix("*").strip("[]"), int(found[3] or PORTS[scheme]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The bounds of one secret."""

    name: str
    places: tuple[Place, ...] | None = None
    """Servers that requests take it to; None for all."""
    uses: tuple[str, ...] | None = None
    """Other receivers: names of steps, `shell:report`, `docker:convert`, `mcp:files`; None for all."""
    flows: tuple[str, ...] | None = None
    """Names, or patterns, of the flows that may name it; None for all but documents that come with a key."""
    env: str | None = None
    """The environment variable that has its value."""

    def lists(self, flow: str) -> bool:
        """Whether the operator has listed this flow for it."""
        return any(fnmatchcase(flow, each) for each in self.flows or ())

    def check_target(self, target: Target) -> None:
        """Return if a request that has it may go there.

        Raises:
            SecretError: it may not.
        """
        if self.places is not None and not any(place.has(target) for place in self.places):
            raise SecretError(
                self.name,
                f"may not be sent to {target.origin}: the settings of this worker bind it to other servers "
                f"([flows.grants.{self.name}] hosts)",
            )

    def check_bound(self) -> None:
        """Return if the settings say to which servers requests take it: the start of a run says where one goes.

        Raises:
            SecretError: they say nothing.
        """
        if self.places is None:
            raise SecretError(
                self.name,
                "may not be sent where the start of a run says: the settings of this worker bind it to no "
                f"server ([flows.grants.{self.name}] hosts)",
            )

    def check_use(self, use: str) -> None:
        """Return if this step or program may have it.

        Raises:
            SecretError: it may not.
        """
        if self.uses is not None and use not in self.uses:
            raise SecretError(
                self.name,
                f"may not be given to {use}: the settings of this worker do not list that ([flows.grants.{self.name}] "
                "uses)",
            )

    def check_flow(self, flow: str) -> None:
        """Return if this flow may name it.

        Raises:
            SecretError: it may not.
        """
        if self.flows is not None and not self.lists(flow):
            raise SecretError(
                self.name,
                f"may not be used by flow {flow}: the settings of this worker do not list that ([flows.grants."
                f"{self.name}] flows)",
            )


def check_targets(bounds: Iterable[Bounds], target: Target) -> None:
    """Return if a request with all these secrets may go there.

    Raises:
        SecretError: it may not.
    """
    for each in bounds:
        each.check_target(target)
