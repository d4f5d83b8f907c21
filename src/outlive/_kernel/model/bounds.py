"""Which runs a principal may know of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from outlive._kernel.model.run import Run


class Bounds(msgspec.Struct, frozen=True):
    """The trees of runs that a principal may know of: the root is of one of the workflows, and has all the tags.

    The root alone counts: the runs of a tree have one journal, so who sees one of them sees all.
    """

    workflows: frozenset[str] | None = None
    """None for all."""
    tags: dict[str, str] = {}

    @property
    def is_open(self) -> bool:
        """Whether there is nothing that such a principal may not know of."""
        return self.workflows is None and not self.tags

    def allow(self, root: Run) -> bool:
        """Whether a tree with this root may be known of."""
        return self.fit(root.workflow, root.tags)

    def fit(self, workflow: str, tags: Mapping[str, str]) -> bool:
        """Whether a tree may be known of whose root is of this workflow and has these tags."""
        return (self.workflows is None or workflow in self.workflows) and self.fit_tags(tags)

    def fit_tags(self, tags: Mapping[str, str]) -> bool:
        """Whether these are tags of a root that may be known of."""
        return self.tags.items() <= tags.items()


UNBOUND = Bounds()


def bounds_of(workflows: Iterable[str] | None, tags: Mapping[str, str] | None) -> Bounds:
    """Bounds, as they are written down: in a key, or in a request to a worker."""
    if workflows is None and not tags:
        return UNBOUND
    return Bounds(None if workflows is None else frozenset(workflows), dict(tags or {}))
