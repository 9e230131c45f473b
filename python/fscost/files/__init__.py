"""Safe opening, creation and replacement of files.

fscost runs as root in folders that other users may own, so no other module opens a file for
writing by its path:

- `replacing(path)`: a result under a name chosen by the user. A regular file holds either the old
  or the new content, complete, whatever happens; a character device, a FIFO or a descriptor
  (`/dev/stdout`) is written to and never replaced.
- `replacing(path, follow=False)`: a file that fscost itself names, in a run's folder. Only a
  regular file is replaced, and no link is followed.
- `creating(path)`: a new file, complete or absent, mode 0600.
- `growing(path)`: a new log that others can read while it grows, mode 0600.
- `check_output(path)`: the errors of `replacing`, before long work.

Files that another user may have made are read with `open_regular`. A run's folder is opened with
`own_folder`, which refuses a folder that other users control. `refuse_replaceable` refuses a place
for a new one below a folder that other users control.

`cache` keeps what takes long to make below the user's cache folder.

Files created under sudo belong to the user who called it (`owner`).

Elsewhere, a symbolic link is followed only if it belongs to the caller or to root. A file that
cannot be written is reported as one `InputError` or `HostError`; `reported` does so for what others
write.
"""

from fscost.files.descriptor import descriptor
from fscost.files.owner import given_to_caller
from fscost.files.place import sudo_caller, trusted_owners
from fscost.files.read import content, is_device_name, open_regular, proc_field
from fscost.files.trust import (
    make_folder,
    own_folder,
    refuse_replaceable,
    remove_folders,
    replaceable,
)
from fscost.files.write import (
    check_output,
    creating,
    growing,
    replacing,
    reported,
    require_space,
    seal,
)

__all__ = [
    "check_output",
    "content",
    "creating",
    "descriptor",
    "given_to_caller",
    "growing",
    "is_device_name",
    "make_folder",
    "open_regular",
    "own_folder",
    "proc_field",
    "refuse_replaceable",
    "remove_folders",
    "replaceable",
    "replacing",
    "reported",
    "require_space",
    "seal",
    "sudo_caller",
    "trusted_owners",
]
