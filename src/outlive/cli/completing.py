"""What a shell offers for a value: programs of the folder, and words of ours. Nothing is imported or opened for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem


def programs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Files, as the shell itself completes them: app.py, orders.flow.yaml."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type="file")]


def statuses(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The statuses of runs."""
    from click.shell_completion import CompletionItem

    from outlive._model.run import STORED

    return [CompletionItem(status.value) for status in STORED if status.value.startswith(incomplete)]
