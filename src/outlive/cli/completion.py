"""`outlive completion`: what a shell needs to complete commands and options."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_OUTLIVE_COMPLETE"
"""Where a shell says that it wants completions; click answers instead of running the command."""


BASH = """\
_outlive_completion() {
    # Bash breaks words at ":" and "=": what stands together in the line is one word of ours.
    local line=${COMP_LINE:0:COMP_POINT} words=() word gap prefix= type value
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        gap=${line%%[![:space:]]*}
        if [[ -n $gap || ${#words[@]} -eq 0 ]]; then words+=("$word"); else words[-1]+=$word; fi
        line=${line:${#gap}+${#word}}
    done
    [[ ${words[-1]} == "$word" ]] || prefix=${words[-1]%"${words[-1]##*[:=]}"}

    local IFS=$'\\n'
    for word in $(COMP_WORDS="${words[*]}" COMP_CWORD=$((${#words[@]} - 1)) _OUTLIVE_COMPLETE=bash_complete "$1"); do
        IFS=',' read -r type value <<< "$word"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$prefix"}") ;;
        esac
    done
}
complete -o nosort -F _outlive_completion outlive
"""
"""The script of click, but for its words: an id and the address of a store have colons."""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(*, shell: str) -> None:
    """Print a script that lets a shell complete commands, options and their values.

    \b
    bash:  eval "$(outlive completion bash)" in ~/.bashrc
    zsh:   eval "$(outlive completion zsh)" in ~/.zshrc, after compinit
    fish:  outlive completion fish | source in ~/.config/fish/config.fish
    """
    from click.shell_completion import get_completion_class

    from outlive.cli import main

    kind = get_completion_class(shell)
    assert kind is not None, f"click completes {shell}"
    made = kind(main, {}, "outlive", VARIABLE)
    click.echo(BASH if shell == "bash" else made.source_template % made.source_vars())
