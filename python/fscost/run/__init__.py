"""Runs: cells of several profiles, repeated until the result is precise enough. Studies and the
command line both start runs here."""

from fscost.run.device_models import device_models
from fscost.run.estimate import Estimate
from fscost.run.execute import RunOutcome, commands, execute
from fscost.run.executor import Executor, Local
from fscost.run.folder import default_folder, folders, point_latest, slug
from fscost.run.listener import Listener
from fscost.run.lock import Holder, exclusive
from fscost.run.spec import KEEP, SETTLE, RunSpec, StoppingRule, same_profiles

__all__ = [
    "KEEP",
    "SETTLE",
    "Estimate",
    "Executor",
    "Holder",
    "Listener",
    "Local",
    "RunOutcome",
    "RunSpec",
    "StoppingRule",
    "commands",
    "default_folder",
    "device_models",
    "exclusive",
    "execute",
    "folders",
    "point_latest",
    "same_profiles",
    "slug",
]
