"""The workloads as shell commands, for scripts that need no fscost.

`promised FILE` follows each call for durability. The contents are those of the workloads in Python.
"""

import shlex
from collections.abc import Collection, Iterator
from pathlib import PurePosixPath

from fscost.crash.promises import (
    CONFIG,
    DATABASE,
    FILLER,
    LOG,
    MAIL,
    OLD,
    OPERATIONS,
    SPOOL,
    STILL,
    SWAP,
)
from fscost.crash.sequences import parsed

_BLOCK = 4096
_WRITES = {
    "append": (3 * _BLOCK, _BLOCK),
    "append 100": (3 * _BLOCK, 100),
    "overwrite the end": (3 * _BLOCK - 100, 100),
    "write a hole behind": (7 * _BLOCK, _BLOCK),
    "write": (0, 5000),
    "overwrite": (0, _BLOCK),
    "overwrite the start": (0, 100),
    "extend": (3 * _BLOCK - 100, 200),
}
"""Offset and length of each write (`sequences.py`)."""
_MAPPED = (
    "import mmap; f = open({0!r}, 'r+b'); f.seek(0, 2); n = min(8192, f.tell());"
    " m = mmap.mmap(f.fileno(), n) if n else None;"
    " n and m.__setitem__(slice(0, n), (b'mapped {0} ' * 4096)[:n])"
)
_ATTRIBUTE = "import os; os.setxattr({0!r}, 'user.a', b'1' * 100)"
CONTENT = r"""# content NAME VERSION FIRST COUNT: sectors of a file, each with its name, version and number
content() {
	awk -v name="$1" -v version="$2" -v first="$3" -v count="$4" 'BEGIN {
		for (i = first + 0; i < first + count; i++) {
			head = name " v" version " #" i " "
			for (line = ""; length(line) < 511; line = line head);
			print substr(line, 1, 511)
		}
	}'
}
# repeated TEXT LENGTH: the text and a space, again and again
repeated() { yes "$1" | tr '\n' ' ' | head -c "$2"; }
# put FILE OFFSET LENGTH: write into a file
put() {
	repeated "new $1 $2" "$3" |
		dd of="$1" bs="$3" seek="$2" oflag=seek_bytes iflag=fullblock conv=notrunc status=none
}
"""
_PREPARE = f"""prepare() {{
	for n in 0 1 2 3 4 5 6 7; do content still-$n 0 0 5 > still-$n; sync still-$n; done
	content database 0 0 64 > database
	content {OLD} 0 0 32768 > {OLD}
	content swap 0 0 8 > swap
	sync database {OLD} swap
	mkdir mail spool
	sync .
	if [ "$(stat -f -c %T .)" = ext2/ext3 ] && [ "$1" = ext4 ]; then
		fallocate -l $(($(stat -f -c '%a * %S' .) - 131072)) {FILLER}
		sync {FILLER}
	fi
	rm {OLD}
	sync .
}}
"""
_ROUND = {
    SPOOL: """\
	content "spool-$1" 0 0 256 > "spool/spool-$1"
	rm -f "spool/spool-$(($1 - 8))"
""",
    SWAP: """\
	content swap "$1" 0 8 > swap.new
	mv swap.new swap
""",
    LOG: """\
	content log 0 $(($1 - 1)) 1 >> log
	sync log
	[ "$1" -ne 1 ] || sync .
	promised log
""",
    CONFIG: """\
	content config "$1" 0 8 > config.new
	sync config.new
	mv config.new config
	sync .
	promised config
""",
    MAIL: """\
	content "mail-$1" 0 0 3 > "mail/mail-$1"
	sync "mail/mail-$1"
	sync mail
	promised "mail/mail-$1"
""",
    DATABASE: """\
	first=$((($1 % 8) * 8))
	content database "$1" $first 8 |
		dd of=database bs=4096 seek=$((first / 8)) iflag=fullblock conv=notrunc status=none
	sync -d database
	promised database
""",
}
"""Each operation of a round."""


def of_files(type_: str, rounds: int, chosen: Collection[str] = tuple(OPERATIONS)) -> list[str]:
    """Return the commands of `promises.py`: functions, then calls of them. `chosen`: the
    operations of each round."""
    body = "".join(_ROUND[each] for each in OPERATIONS if each in chosen)
    calls = [
        f"prepare {shlex.quote(type_)}",
        *(f"round {number}" for number in range(1, rounds + 1)),
    ]
    return [f"{CONTENT}{_PREPARE}round() {{\n{body}}}\n", *calls]


def of_sequence(name: str) -> list[str]:
    """Return the commands of one sequence, from the name of its folder."""
    found = parsed(name.partition(" ")[2])
    lines = [CONTENT, f"mkdir {shlex.quote(name)}", f"cd {shlex.quote(name)}", "mkdir A B"]
    for needed in sorted(found.given):
        if needed == "A/old":
            lines.append("mkdir A/old")
        else:
            lines.append(f"repeated 'old {needed}' {3 * _BLOCK} > {needed}")
    lines += ["sync -f .", *(f"promised {needed}" for needed in sorted(found.given))]
    lines += [command(call.words) for call in found.calls]
    flag = " -d" if found.sync == "fdatasync" else ""
    # A symbolic link that leads nowhere cannot be synced.
    sync = f"[ ! -e {found.name} ] || sync{flag} {found.name}"
    return [*lines, sync, f"promised {found.name}"]


def _path(dotted: str) -> str:
    return dotted.replace(".", "/", 1)


def command(words: str) -> str:
    """Return a call of `sequences.py` as a shell command."""
    *call, first = words.split(" ")
    match words.split(" "):
        case ["creat", file]:
            return f": > {_path(file)}"
        case ["mkdir" | "rmdir" as name, file]:
            return f"{name} {_path(file)}"
        case ["truncate", file, size]:
            return f"truncate -s {size} {_path(file)}"
        case ["fallocate", file]:
            return f"fallocate -o {3 * _BLOCK} -l {2 * _BLOCK} {_path(file)}"
        case ["link", old, new]:
            return f"ln {_path(old)} {_path(new)}"
        case ["symlink", file]:
            return f"ln -s foo {_path(file)}"
        case ["unlink", file]:
            return f"rm {_path(file)}"
        case ["rename", old, new, *_]:
            return f"mv -f {_path(old)} {_path(new)}"
        case ["setxattr", file]:
            return f"python3 -c {shlex.quote(_ATTRIBUTE.format(_path(file)))}"
        case ["write", "directly", file]:
            into = f"dd of={_path(file)} bs={_BLOCK} iflag=fullblock oflag=direct conv=notrunc"
            return f"repeated 'direct {_path(file)}' {_BLOCK} | {into} status=none"
        case ["write", "mapped", file]:
            return f"python3 -c {shlex.quote(_MAPPED.format(_path(file)))}"
    offset, length = _WRITES[" ".join(call)]
    return f"put {_path(first)} {offset} {length}"


def sequence_of(path: str) -> str:
    """Return the folder of the sequence that a file belongs to."""
    return PurePosixPath(path).parts[0]


def lines(chosen: Collection[str] | None, type_: str, path: str, rounds: int) -> Iterator[str]:
    """Yield the commands of a workload, as far as the promise about a file needs them. `chosen`:
    operations of the workload `files`, or None for sequences."""
    if chosen is None:
        yield from of_sequence(sequence_of(path))
        return
    functions, prepare, *calls = of_files(type_, rounds, chosen)
    yield from (functions, prepare)
    if path.partition("-")[0] in (STILL, DATABASE, SWAP):
        yield f"promised {path}"
    yield from calls
    if not path:
        # The file system itself.
        yield "promised ."
