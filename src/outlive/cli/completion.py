"""`outlive completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_OUTLIVE_COMPLETE"
"""Where a shell says that it wants completions; click answers instead of running the command."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(*, shell: str) -> None:
    """Print a script that lets a shell complete commands, options and their values.

    \b
    bash:  outlive completion bash > ~/.local/share/bash-completion/completions/outlive
    zsh:   outlive completion zsh > "${fpath[1]}/_outlive"
    fish:  outlive completion fish > ~/.config/fish/completions/outlive.fish
    """
    from click.shell_completion import get_completion_class

    from outlive.cli import main

    kind = get_completion_class(shell)
    assert kind is not None, f"click completes {shell}"
    made = kind(main, {}, "outlive", VARIABLE)
    click.echo(made.source_template % made.source_vars())
