"""`outlive fsck`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from outlive.cli.edge import counted, json_option, open_store, print_json, run, store_option

if TYPE_CHECKING:
    from outlive._features.fsck.checker import Checker
    from outlive._features.fsck.problem import Problem


@click.command()
@store_option
@click.option("--repair", is_flag=True, help="Write run rows and wake-ups again from the journals; never a journal.")
@json_option
def fsck(*, url: str, repair: bool, as_json: bool) -> None:
    """Prove that a store is whole.

    Reads every journal, verifies each row of it, folds it, and compares the result with everything else that lies in
    the store: run rows, owners, wake-ups, messages, tags, outcomes of items and blobs. Workers may go on meanwhile.

    Exit code 0: the store is whole, or was repaired. 1: problems were found, or are left. 2: the command is wrong.
    """
    checker, problems = run(_check(url, repair=repair, says=not as_json))
    left = [problem for problem in problems if not problem.is_repaired]
    if as_json:
        print_json(
            {
                "trees": checker.trees,
                "runs": checker.runs,
                "events": checker.events,
                "problems": [_plain(problem) for problem in problems],
                "left": len(left),
            }
        )
    else:
        looked = f"{counted(checker.trees, 'tree')}, {counted(checker.runs, 'run')}, {counted(checker.events, 'event')}"
        click.echo(f"{looked}: {_verdict(problems, left)}")
    sys.exit(1 if left else 0)


async def _check(url: str, *, repair: bool, says: bool) -> tuple[Checker, list[Problem]]:
    from outlive._features.fsck.checker import Checker

    problems: list[Problem] = []
    async with open_store(url) as store:
        checker = Checker(store, repair=repair)
        async for problem in checker.problems():
            problems.append(problem)
            if says:
                click.echo(f"{problem}{'  [repaired]' if problem.is_repaired else ''}")
    return checker, problems


def _verdict(problems: list[Problem], left: list[Problem]) -> str:
    if not problems:
        return "whole"
    if not left:
        return f"{counted(len(problems), 'problem')}, all repaired"
    from outlive._features.fsck.problem import REPAIRABLE, Kind

    kinds = {problem.kind for problem in left}
    advice = ""
    if kinds & REPAIRABLE:
        advice = "; --repair may help with some"
    if Kind.OWNER in kinds:
        advice += "; the next worker that has the workflow takes over what has no owner"
    if kinds - REPAIRABLE - {Kind.OWNER}:
        advice += "; a journal that is damaged comes back from a backup only"
    return f"{counted(len(left), 'problem')}{' left' if len(left) < len(problems) else ''}{advice}"


def _plain(problem: Problem) -> dict[str, object]:
    return {
        "run_id": problem.run_id or None,
        "journal": problem.journal or None,
        "seq": problem.seq,
        "kind": problem.kind.value,
        "what": problem.what,
        "is_repaired": problem.is_repaired,
    }
