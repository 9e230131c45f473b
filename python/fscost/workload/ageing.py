"""Ageing of a file system: churn before the workload, and files whose times are set back."""

from dataclasses import replace

from fscost.errors import InputError
from fscost.workload.model import Step, Workload

CHURN = "age"
TIMES = "aged"
MOST_ROUNDS = 1000
MOST_DAYS = 10_000.0
_DAY_S = 86_400
_FILES = 256
"""Files per round. The next round deletes half of them, so that free space is fragmented."""


def churned(workload: Workload, rounds: int) -> Workload:
    """Prepend an unmeasured step that creates, rewrites and deletes files for this many rounds."""
    if not 1 <= rounds <= MOST_ROUNDS:
        raise InputError(f"--age {rounds} is not a number of rounds", f"give 1 to {MOST_ROUNDS}")
    # A round writes at most a 64th of the free space, and no more than 32 MiB.
    shell = f"""
d=.fscost-age; mkdir $d
free=$(df --output=avail --block-size=1 . | tail -n 1)
most=$((free / 64 / {_FILES} * 2)); [ $most -lt 262144 ] || most=262144
r=0
while [ $r -lt {rounds} ]; do
  mkdir $d/$r; i=0
  while [ $i -lt {_FILES} ]; do
    n=$(((i * 7919 + r * 104729 + {workload.seed}) % 1021 * most / 1021 + 1))
    yes "$r $i" | head -c $n > $d/$r/$i
    i=$((i + 1))
  done
  sync -f .
  o=$((r - 1)); i=0
  while [ $o -ge 0 ] && [ $i -lt {_FILES} ]; do rm $d/$o/$i; i=$((i + 2)); done
  i=1
  while [ $o -ge 0 ] && [ $i -lt {_FILES} ]; do echo $r >> $d/$o/$i; i=$((i + 6)); done
  r=$((r + 1))
done
sync -f ."""
    return replace(workload, steps=(Step(CHURN, shell, measured=False), *workload.steps))


def aged(workload: Workload, days: float) -> Workload:
    """Insert an unmeasured step before the first measured one that sets back the times of all
    files.

    ctime cannot be set back, and relatime compares the access time with it. If the times go back
    less than a day, the step therefore also reads each file once: its access time is then newer
    than its ctime, as for any file read since its last change. Remounting makes the times durable
    under lazytime too.
    """
    if not 0 < days <= MOST_DAYS:
        raise InputError(
            f"--aged {days:g} is not a number of days", f"give more than 0, at most {MOST_DAYS:g}"
        )
    if all(step.measured for step in workload.steps):
        raise InputError(
            "--aged has no files to set back: nothing is prepared before the measured command",
            "prepare them with --prepare, or leave --aged out",
        )
    find = "find . -xdev -depth ! -name lost+found ! -path './.fscost-*'"
    shell = f"t=$(($(date +%s) - {round(days * _DAY_S)})); {find} -exec touch -h -d @$t {{}} +"
    if days < 1:
        # Wait a second, because an access time in the same tick as the ctime is not newer.
        shell += f"; sleep 1; {find} -type f -exec cat {{}} + >/dev/null"
        shell += f"; {find} -type d -exec ls {{}} + >/dev/null"
    return workload.before_measured(Step(TIMES, shell, measured=False, settle="remount"))
