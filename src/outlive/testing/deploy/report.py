"""The report about the open runs of a store at a deploy: findings in groups, for people and for programs.

Runs that meet the same fate at the same place of the code are one group. What differs from run to run, ids and how
often a call was made, does not separate them; a group shows the texts of its first run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from outlive.testing.deploy.verdict import Finding, Kind

EXAMPLES_MAX = 3
SHOWN_MAX = 50
"""Groups that a text shows; all of them are in what programs get."""
_VARIES = re.compile(
    r"#\d+"  # How often a call was made.
    r"|(?<![\w.])\d+(?:\.\d+)*(?=/)"  # The task that made it.
    r"|(?<=detached run )\S+|(?<=the end of )\S+|(?<=promise )\S+"  # Ids.
    r"|(?<=run )\d+|(?<=attempt )\d+|(?<=event )\d+|(?<=message )\d+|(?<=and )\d+(?= more)|(?<=\[)\d+(?=\])"
    r"|(?<=\()[^()]*\d[^()]*(?=\))"  # The key of an ask.
    r"|input_value=.*?(?=, input_type)"  # A value of the user, in a message of pydantic.
)
_HEADINGS = {
    Kind.DIVERGES: "would be parked: the code asks for something else than the journal has",
    Kind.UNREADABLE: "could not read what is stored, and would be parked",
    Kind.UNDEFINED: "would not be taken by a worker with this code",
    Kind.DECLINED: "would be left to workers with other code",
    Kind.FAILS: "would fail at once",
    Kind.STOPS: "would be parked",
    Kind.DAMAGED: "cannot be read by any code",
    Kind.UNDECIDED: "could not be replayed: the process that tried died or did not end",
    Kind.ENDS: "would end at once, where the code of their time waited",
    Kind.ARGUMENTS: "would go on; the code calls with other arguments, and what the journal has counts",
}
_ADVICE = {
    Kind.DIVERGES: 'ask for the change with outlive.patched("..."), or give the new code a version of its own',
    Kind.UNREADABLE: "give new fields a default, or change the annotation back; an engine with codecs is APP:engine",
    Kind.UNDEFINED: "keep the old version until its runs have ended, or import what defines it",
    Kind.DECLINED: "deploy code that has this change",
    Kind.FAILS: "look at what the workflow does after the event",
    Kind.STOPS: "look at what the workflow does after the event",
    Kind.DAMAGED: "run `outlive fsck`",
    Kind.UNDECIDED: "look at what the workflow does between its steps: it must neither block nor end the process",
}


class Group(msgspec.Struct, kw_only=True):
    """Runs that meet the same fate."""

    kind: Kind
    definition: str
    journal: str = ""
    code: str = ""
    what: str = ""
    """The rest of the finding about the first run."""
    count: int = 0
    known: int = 0
    """How many of them are parked already for this very reason: the deploy changes nothing for them."""
    first_event: int | None = None
    last_event: int | None = None
    """The lowest and the highest number of the event at which they stop."""
    examples: list[str] = []

    @property
    def is_problem(self) -> bool:
        """Whether the deploy does harm to some of them."""
        return self.kind.is_problem and self.known < self.count

    def add(self, finding: Finding) -> None:
        """One run more."""
        self.count += 1
        self.known += finding.is_known
        if len(self.examples) < EXAMPLES_MAX:
            self.examples.append(finding.run_id)
        if finding.seq is not None:
            self.first_event = min(finding.seq, finding.seq if self.first_event is None else self.first_event)
            self.last_event = max(finding.seq, finding.seq if self.last_event is None else self.last_event)

    def __str__(self) -> str:
        lines = [f"{self.definition}: {self.count:,} {'run' if self.count == 1 else 'runs'} {_HEADINGS[self.kind]}"]
        if self.journal or self.code:
            lines += [f"  - journal: {self.journal}", f"  + code:    {self.code}"]
        lines += [f"  {line}" for line in self.what.splitlines()]
        at = ""
        if self.first_event is not None:
            is_one = self.first_event == self.last_event
            at = f"at event {self.first_event}; " if is_one else f"at events {self.first_event} to {self.last_event}; "
        lines.append(f"  {at}{'for example ' if self.count > len(self.examples) else ''}{', '.join(self.examples)}")
        if self.known:
            lines.append(f"  {self.known:,} of them {'is' if self.known == 1 else 'are'} parked for this already")
        if self.kind in _ADVICE:
            lines.append(f"  {_ADVICE[self.kind]}")
        return "\n".join(lines)


class DeployReport:
    """The report about the open runs of a store if this code is deployed."""

    def __init__(self) -> None:
        self.open = 0
        """Open runs of the store, or of the workflow that was asked for."""
        self.checked = 0
        """How many of them were looked at."""
        self.harmed = 0
        """Runs that would not go on as they should because of the deploy."""
        self.seconds = 0.0
        self._groups: dict[tuple[Any, ...], Group] = {}

    @property
    def groups(self) -> list[Group]:
        """The groups of findings: problems first, the largest group first."""
        return sorted(self._groups.values(), key=lambda it: (not it.is_problem, not it.kind.is_problem, -it.count))

    @property
    def is_fine(self) -> bool:
        """Whether every run that was looked at goes on, or is as it was before."""
        return not self.harmed

    def __str__(self) -> str:
        looked = (
            f"{self.checked:,} of {self.open:,} open runs" if self.checked < self.open else f"{self.open:,} open runs"
        )
        if self.open == 1:
            looked = "1 open run"
        verdict = "all go on with this code" if self.is_fine else f"{self.harmed:,} would not go on with this code"
        head = f"{looked} replayed: {verdict}" if self.checked else "no open runs: there is nothing to replay"
        groups = [str(group) for group in self.groups[:SHOWN_MAX]]
        if len(self._groups) > SHOWN_MAX:
            groups.append(f"and {len(self._groups) - SHOWN_MAX:,} groups more")
        return "\n\n".join([head, *groups])

    def plain(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "open": self.open,
            "checked": self.checked,
            "harmed": self.harmed,
            "is_fine": self.is_fine,
            "seconds": round(self.seconds, 3),
            "groups": [{"is_problem": it.is_problem, **msgspec.to_builtins(it)} for it in self.groups],
        }


def add_findings(report: DeployReport, findings: Iterable[Finding]) -> None:
    """Add the findings about some runs, all findings about one run together."""
    harmed: set[str] = set()
    for finding in findings:
        texts = (finding.journal, finding.code, finding.likeness or finding.what)
        key = (finding.kind, finding.definition, *map(shape, texts))
        group = report._groups.get(key)
        if group is None:
            group = report._groups[key] = Group(
                kind=finding.kind,
                definition=finding.definition,
                journal=finding.journal,
                code=finding.code,
                what=finding.what,
                examples=[],
            )
        group.add(finding)
        if finding.kind.is_problem and not finding.is_known:
            harmed.add(finding.run_id)
    report.harmed += len(harmed)


def shape(text: str) -> str:
    """A text without what differs from run to run."""
    varied = _VARIES.sub("*", text)
    # Many branches of one kind are one; some runs have more of them open than others.
    return ", ".join(dict.fromkeys(varied.removeprefix("waits for ").split(", ")))
