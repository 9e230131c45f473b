"""`fscost profiles`: list of names that --on accepts."""

from typing import Annotated

import typer

from fscost import profile
from fscost.cli import shared
from fscost.cli.lines import print_document, print_lines
from fscost.errors import InputError, did_you_mean


def profiles(
    wanted: Annotated[
        str | None,
        typer.Argument(
            metavar="TYPE",
            help="List the profiles of one file system, for example ext4.",
            show_default=False,
        ),
    ] = None,
    json: shared.Json = False,
) -> None:
    """List the named profiles, one line each."""
    found = [each for each in profile.catalogue() if wanted in (None, each.type)]
    found.sort(key=lambda each: each.array is not None)
    if not found:
        types = sorted({each.type for each in profile.catalogue()})
        raise InputError(
            f"no named profile has the file-system type '{wanted}'",
            did_you_mean(str(wanted), types) or f"file systems: {', '.join(types)}",
        )
    if json:
        entries = [
            {
                "name": each.name,
                "type": each.type,
                "mkfs_flags": each.mkfs_flags,
                "mount_options": each.mount_options,
                "summary": each.summary,
            }
            for each in found
        ]
        print_document("profiles", {"profiles": entries})
        return
    print_lines([(each.name, each.summary) for each in found])
    print(
        "\nAny other profile: the type, mkfs flags, then -o with mount options, as in --on 'ext4 -O"
        " ^has_journal -o noatime';"
    )
    print("on an md array with mdadm's own flags, as in --on 'xfs on md -l 5 -n 3'")
