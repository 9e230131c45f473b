"""`fscost compare`: the main command. Its help imports nothing but its options."""

import typer

from fscost.cli.declare import with_fields
from fscost.cli.options import Options


@with_fields
def compare(context: typer.Context, options: Options) -> None:
    """Measure and compare the cost of file systems for a workload.

    Without arguments: five profiles and a small workload. A profile is spelled as for mkfs and
    mount: the type, mkfs flags, then -o with mount options.

    fscost compare --on ext4 --on 'ext4 -o commit={5,30}' -- 'tar xf {here}/src.tar && make -C src'

    Choices in braces are a sweep: all combinations run, or few with --design screening.

    The command starts in the new file system, which is empty; {here} is the folder that you are in.
    """
    from fscost.cli.comparing import compared

    raise typer.Exit(compared(context, options))
