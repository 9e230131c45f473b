"""A state with a fault as a test for xfstests
(https://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git).

The test records the workload with dm-log-writes and replays it up to each promise. Such a log holds
writes in the order in which they became durable, so that a replay loses all later ones: it cannot
keep some pending writes and lose others.
"""

import shlex
import textwrap
from pathlib import PurePath

from fscost.crash.case import Case
from fscost.errors import InputError

_TEXT = """\
#! /bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# FS QA Test {name}
#
{comment}
#
. ./common/preamble
_begin_fstest auto log replay recoveryloop

_cleanup()
{{
	_log_writes_cleanup &> /dev/null
	cd /
	rm -rf $tmp.*
}}

. ./common/filter
. ./common/dmlogwrites

[ "$FSTYP" = {type} ] || _notrun "needs FSTYP="{type}
_require_scratch_size_nocheck {kib}
_require_no_logdev
_require_log_writes

{flags}_scratch_mkfs >> $seqres.full 2>&1 || _notrun "mkfs refused $MKFS_OPTIONS"

_log_writes_init $SCRATCH_DEV {size}
_log_writes_mkfs >> $seqres.full 2>&1
_log_writes_mount
saved=$tmp.saved
mkdir $saved
count=0

# promised FILE: its content and name are durable from now on.
promised()
{{
	count=$((count + 1))
	echo "${{PWD#$SCRATCH_MNT}}/$1" > $saved/$count.name
	[ ! -f "$1" ] || cp "$1" $saved/$count.file
	_log_writes_mark promise$count
}}

{operations}
cd /
_log_writes_unmount
_log_writes_mark end
_log_writes_remove

# A crash after each promise: all of the log up to its mark.
for number in $(seq 1 $count); do
	_log_writes_replay_log promise$number $SCRATCH_DEV
	_scratch_mount
	name=$(cat $saved/$number.name)
	if [ -f $saved/$number.file ]; then
		cmp -s "$SCRATCH_MNT$name" $saved/$number.file ||
			_fail "promise $number: $name is not what was synced"
	else
		[ -e "$SCRATCH_MNT$name" ] || _fail "promise $number: $name is missing"
	fi
	_scratch_unmount
	_check_scratch_fs
done

echo "Silence is golden"
status=0
exit
"""


def text(found: Case) -> str:
    """Return the test."""
    if not found.lines:
        raise InputError(
            "the commands of this workload are unknown, so that no test can record them",
            "show a state of --workload files or of sequences, about a file",
        )
    flags = ""
    if found.mkfs_flags:
        flags += f'export MKFS_OPTIONS="$MKFS_OPTIONS "{shlex.quote(" ".join(found.mkfs_flags))}\n'
    if found.options:
        flags += f'export MOUNT_OPTIONS="$MOUNT_OPTIONS -o "{shlex.quote(found.options)}\n'
    operations = "\n".join(["cd $SCRATCH_MNT", *found.lines])
    return _TEXT.format(
        name="from fscost",
        comment="\n".join(_comment(found)),
        type=shlex.quote(found.type),
        flags=flags,
        size=found.size_bytes,
        kib=found.size_bytes >> 10,
        operations=operations,
    )


def output(name: str) -> str:
    """Return the output that the test must have, under this name."""
    return f"QA output created by {PurePath(name).name}\nSilence is golden\n"


def _comment(found: Case) -> list[str]:
    words = [f"Found by fscost crash on {found.profile}:", *found.words]
    words.append(
        "The log holds writes in the order in which they became durable: a replay cannot keep some"
        " pending writes and lose others, as that state did."
    )
    return [f"# {line}" for each in words for line in textwrap.wrap(each, 76)]
