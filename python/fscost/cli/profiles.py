"""`fscost profiles`: what can be named after --on."""

from fscost import profile
from fscost.cli.lines import print_lines


def profiles() -> None:
    """List the profiles that have a name of their own, one line each."""
    print_lines([(found.name, found.summary) for found in profile.catalogue()])
    print(
        "\nAny other: the type, mkfs's own flags, then -o and mount options, as in --on 'ext4 -O ^has_journal -o noatime';"
    )
    print("on an md array with mdadm's own flags, as in --on 'xfs on md -l 5 -n 3'")
