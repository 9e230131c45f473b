"""Execution of a run's cells behind one interface: on this machine, or on others."""

from fscost.run.executor.base import Executor, Gone, Ran, Starts, Steps
from fscost.run.executor.local import Local

__all__ = ["Executor", "Gone", "Local", "Ran", "Starts", "Steps"]
