"""Execution of a run's cells behind one interface: on this machine, or on others."""

from fscost.run.executor.base import Executor, Ran, Starts, Steps
from fscost.run.executor.local import Local

__all__ = ["Executor", "Local", "Ran", "Starts", "Steps"]
