"""A state with a fault as a shell script that needs no fscost."""

import base64
import gzip
import shlex
import textwrap
from collections.abc import Iterator, Sequence

from fscost.crash.case import CHECK, CONTENT, FOREIGN, MOUNT, Case, Write
from fscost.crash.families import FAMILIES, family

_SECTOR = 512
_MKFS_QUIET = {"ext": ["-q", "-F"], "xfs": ["-q", "-f"], "btrfs": ["-q", "-f"]}
_BEGIN = """\
#!/bin/sh
{comment}
#
# Run as root: `sh FILE`, or `sh FILE --control`. {control}
# Ends with 0 if the promise is kept, 1 if it is broken, 2 if the script cannot run.
set -u
export LC_ALL=C
case "${{1-}}" in '' | --control) mode=${{1-}} ;; *) echo "usage: $0 [--control]" >&2; exit 2 ;; esac
[ "$(id -u)" -eq 0 ] || {{ echo "$0: root is needed" >&2; exit 2; }}
for tool in {tools}; do
	command -v "$tool" > /dev/null || {{ echo "$0: $tool is missing" >&2; exit 2; }}
done
work=$(mktemp -d) || exit 2
root=$work/root
loop=
trap 'umount "$root" 2> /dev/null; [ -z "$loop" ] || losetup -d "$loop"; rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
mkdir "$root"

fail() {{ echo "cannot run: $*" >&2; exit 2; }}
broken() {{ echo "BROKEN: $*"; exit 1; }}
# attach IMAGE: give it a loop device
attach() {{ loop=$(losetup --find --show --sector-size {sector} "$1") || fail "losetup $1"; }}
detach() {{ losetup -d "$loop"; loop=; }}
mounted() {{ mount -i -t {type} {options}"$loop" "$root"; }}
# sectors FILE OFFSET COUNT SKIP: copy sectors of a file into the image
sectors() {{
	dd if="$1" of="$work/state" bs={unit} seek="$2" count="$3" skip="$4" conv=notrunc \\
		status=none || fail "dd"
}}
"""
_LIVE = """
# 1. The operations, without a power cut: what they promise holds.
truncate -s {size} "$work/live"
attach "$work/live"
mkfs.{type} {mkfs} "$loop" > /dev/null 2>&1 || fail "mkfs.{type}"
mounted || fail "mount"
promised() {{ :; }}
(
	set -e
	cd "$root"
{operations}
) || fail "the operations"
{check}
umount "$root" || fail "umount"
detach
echo "without a power cut: kept"
"""
_STATE = """
# 2. The disk at the cut: what was durable, then the writes that reached the medium.
truncate -s {size} "$work/state"
{base}
{kept}
if [ "$mode" = --control ]; then
	:
{lost}
fi

# 3. Recovery, and the check.
attach "$work/state"
repair() {{ {repair}; }}
if ! mounted; then
	{unmounted}
fi
{check}
umount "$root" || fail "umount"
if ! {fsck} "$loop" > "$work/fsck" 2>&1; then
	cat "$work/fsck"
	{dirty}
fi
detach
echo "after the power cut: kept"
"""


def text(found: Case) -> str:
    """Return the script."""
    about = FAMILIES[family(found.type)]
    options = f"-o {shlex.quote(_options(found))} " if _options(found) else ""
    mkfs = [*_MKFS_QUIET.get(family(found.type), []), *found.mkfs_flags]
    tools = [
        "losetup",
        "mount",
        "dd",
        "base64",
        "gzip",
        "awk",
        f"mkfs.{found.type}",
        about.check[0],
    ]
    begin = _BEGIN.format(
        control=_control(found),
        comment=_comment([f"{found.profile}:", *found.words]),
        tools=" ".join(tools),
        sector=found.sector_bytes,
        unit=_SECTOR,
        type=found.type,
        options=options,
    )
    check = _check(found)
    live = _LIVE.format(
        size=found.size_bytes,
        type=found.type,
        mkfs=shlex.join(mkfs),
        operations=textwrap.indent("\n".join(found.lines), "\t"),
        check=check,
    )
    return "\n".join([begin, *_expected(found), live if found.lines else "", _state(found, check)])


def _options(found: Case) -> str:
    shared = ["nouuid"] if found.type == "xfs" else []
    return ",".join([*shared, *([found.options] if found.options else [])])


def _control(found: Case) -> str:
    """Say what the script does if it loses no write."""
    if all(each.is_kept for each in found.writes):
        return "No write is lost, so that both are the same."
    return "The control loses no write, and must pass."


def _comment(lines: Sequence[str]) -> str:
    wrapped = [part for line in lines for part in textwrap.wrap(line, 96)]
    return "\n".join(f"# {line}" for line in ["A power cut breaks a promise.", *wrapped])


def _state(found: Case, check: str) -> str:
    about = FAMILIES[family(found.type)]
    repair = shlex.join(about.repair) + ' "$loop" > /dev/null 2>&1' if about.repair else "false"
    is_fault = found.check in (MOUNT, CHECK)
    again = f"repair; mounted || broken 'no mount, even after a repair'\n{check}"
    dirty = 'broken "errors after recovery"' if found.check == CHECK else f'{again}\numount "$root"'
    kept = [write for write in found.writes if write.is_kept]
    lost = [write for write in found.writes if not write.is_kept]
    return _STATE.format(
        size=found.size_bytes,
        base="\n".join(_written("base", list(found.base))),
        kept="\n".join(
            [*(f"# kept: {each.words}" for each in kept), *_written("kept", _places(kept))]
        ),
        lost="\n".join(
            [*(f"# lost: {each.words}" for each in lost), *_written("lost", _places(lost))]
        ),
        repair=repair,
        unmounted="broken 'it does not mount'" if is_fault else again.partition("\n")[0],
        check=check,
        fsck=shlex.join(about.check),
        dirty=dirty,
    )


def _places(writes: Sequence[Write]) -> list[tuple[int, bytes]]:
    return [(each.offset, each.data) for each in writes]


def _written(name: str, parts: Sequence[tuple[int, bytes]]) -> Iterator[str]:
    """Yield the lines that write these parts of the disk."""
    if not parts:
        return
    yield from _file(name, b"".join(data for _, data in parts))
    copies = f'sectors "$work/{name}" $offset $count $skip'
    yield f"while read -r offset count skip; do {copies}; done << END"
    at = 0
    for offset, data in parts:
        count = len(data) // _SECTOR
        yield f"{offset // _SECTOR} {count} {at}"
        at += count
    yield "END"


def _file(name: str, data: bytes) -> Iterator[str]:
    yield f'base64 -d << END | gzip -d > "$work/{name}" || fail "{name}"'
    yield from textwrap.wrap(base64.b64encode(gzip.compress(data, mtime=0)).decode(), 100)
    yield "END"


def _expected(found: Case) -> Iterator[str]:
    """Yield the lines that make the versions that a file may have."""
    for number, version in enumerate(found.versions):
        yield from _file(f"version{number}", version)


def _check(found: Case) -> str:
    """Return the check of the mounted file system: one line."""
    file = f'"$root"/{shlex.quote(found.path)}'
    missing = f"[ -e {file} ] || [ -L {file} ] || broken {shlex.quote(f'{found.path} is missing')}"
    if found.check == CONTENT:
        same = [
            f'head -c {len(version)} {file} | cmp -s - "$work/version{number}"'
            for number, version in enumerate(found.versions)
        ]
        lost = f"broken {shlex.quote(f'{found.path} is not what was promised')}"
        return "\n".join([missing, " ||\n\t".join([*same, lost])] if same else [missing])
    if found.check == FOREIGN:
        name = found.path.rpartition("/")[2]
        foreign = f"tr -d '\\0' < {file} | grep -a -v -q {shlex.quote(f'^{name} v')}"
        words = shlex.quote(f"{found.path} holds bytes of another file")
        return f"! [ -e {file} ] || ! {foreign} || broken {words}"
    return ":"
