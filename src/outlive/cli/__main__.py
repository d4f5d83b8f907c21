"""`python -m outlive.cli`: the command line where the `outlive` script is not on the path."""

from outlive.cli import main

main(prog_name="outlive")
