"""How fscost opens, makes and replaces files.

fscost runs as root in folders that others may own, so nothing else in the program opens a file for
writing by its path:

- `replacing(path)`: a result under a name that a person gave, or that fscost gives in its own
  folder. A regular file is the old one or the new one,
  whole, whatever happens; a character device, a FIFO or a descriptor (`/dev/stdout`) is written and
  never replaced.
- `creating(path)`: a file that must not exist, whole or not at all, 0600.
- `growing(path)`: a log that others see grow; it must not exist, 0600.
- `check_output(path)`: the refusals of `replacing`, before long work.

What somebody else may have made is read with `open_regular`, and a run's folder is opened with
`own_folder`, which refuses one that others decide about.

Files made under sudo belong to the user who called it (`owner`).

A symbolic link on the way is followed only where it belongs to the caller or to root. What cannot
be written is one `InputError` or `HostError`.
"""

from fscost.files.owner import given_to_caller
from fscost.files.place import sudo_caller, trusted_owners
from fscost.files.read import content, is_device_name, open_regular
from fscost.files.trust import make_folder, own_folder, remove_folders
from fscost.files.write import check_output, creating, growing, replacing, require_space, seal

__all__ = [
    "check_output",
    "content",
    "creating",
    "given_to_caller",
    "growing",
    "is_device_name",
    "make_folder",
    "open_regular",
    "own_folder",
    "remove_folders",
    "replacing",
    "require_space",
    "seal",
    "sudo_caller",
    "trusted_owners",
]
