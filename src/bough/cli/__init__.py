"""The command `bough`."""

from bough.cli.command import main as main
