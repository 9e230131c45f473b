"""Profiles under several kernels."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fscost.errors import InputError
from fscost.profile.model import Profile


def on_kernels(found: Profile, kernels: Sequence[str]) -> list[Profile]:
    """Return the profile under each kernel, with names such as `ext4 @6.1` if there are several."""
    if len(set(kernels)) != len(kernels):
        raise InputError(f"--kernel names one twice: {', '.join(kernels)}", "name each once")
    if len(kernels) < 2:
        return [replace(found, kernel="".join(kernels))]
    return [
        replace(
            found,
            kernel=kernel,
            name=f"{found.name} @{Path(kernel).name}",
            levels=(*found.levels, ("kernel", Path(kernel).name)) if found.sweep else (),
        )
        for kernel in kernels
    ]
