"""The table of commands: what it promises is there."""

import pytest
from click.testing import CliRunner

from outlive.cli import COMMANDS, main


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_be_imported_and_says_what_the_table_promises(name: str) -> None:
    """In its own help, in the same words."""
    output = CliRunner().invoke(main, [name, "--help"])

    assert output.exit_code == 0
    assert COMMANDS[name].promise in " ".join(output.output.split())
