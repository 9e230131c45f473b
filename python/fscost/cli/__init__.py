"""The command line. Nothing imports it."""

from fscost.cli.app import main

__all__ = ["main"]
