"""A finished run, written for people and for programs."""

from fscost.cli.output.emit import Outputs

__all__ = ["Outputs"]
