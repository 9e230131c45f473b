"""Every built-in workload runs on a real file system and leaves the expected files."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from fscost import workload
from fscost.workload import Workload, inputs

pytestmark = pytest.mark.root

DISK_BYTES = 512 << 20

# Configuration of a host that built-in workloads must not read: dpkg would leave a file, and git
# would change line ends.
HOSTILE = """
cp -a /etc .
mkdir -p etc/dpkg/dpkg.cfg.d
echo "post-invoke=touch $BASE/fs/obeyed" > etc/dpkg/dpkg.cfg.d/hostile
echo '* text eol=crlf' > etc/gitattributes
echo '[core] autocrlf = true' > etc/gitconfig
mount --bind etc /etc
"""

# The mount lives in a private namespace and ends with it; the loop device is freed when the script
# ends.
SCRIPT = """
set -eu
cd "$BASE"; mkdir fs scratch
truncate -s $DISK_BYTES disk
disk=$(losetup -f --show disk)
trap 'cd /; umount "$BASE/fs" 2>/dev/null || :; losetup -d $disk' EXIT
eval "$HOSTILE"
$MKFS $disk >/dev/null 2>&1
mount -t $TYPE -o "$OPTIONS" $disk fs
written() { sync -f fs; awk '{print $7 * 512}' OFMT=%.0f CONVFMT=%.0f "/sys/block/${disk#/dev/}/stat"; }
"""

# Lazy initialisation would write megabytes in the middle of the steps.
MKFS = {"ext4": "mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0", "btrfs": "mkfs.btrfs -q"}


class Ran:
    """Result of a workload: bytes written by step, sizes of files by name."""

    def __init__(self, output: str) -> None:
        lines = [line.split("\t") for line in output.splitlines() if "\t" in line]
        self.written = {name: int(number) for kind, name, number in lines if kind == "step"}
        self.files = {name: int(number) for kind, name, number in lines if kind == "file"}


def run(resolved: Workload, folder: Path, type_: str = "ext4", options: str = "rw") -> Ran:
    for tool in (*resolved.needs_tools, f"mkfs.{type_}"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    made = inputs.prepare(resolved, folder / "in")
    base = folder / "base"
    base.mkdir()
    script = SCRIPT
    for step in resolved.steps:
        shell = (
            step.shell.replace("{dir}", f"{base}/fs")
            .replace("{input}", str(made))
            .replace("{scratch}", f"{base}/scratch")
        )
        if step.drop_caches:
            script += "sync -f fs; echo 3 > /proc/sys/vm/drop_caches\n"
        script += (
            f'before=$(written)\n(cd fs; exec env -i PATH="$PATH" HOME={base}/scratch'
            f" TMPDIR={base}/scratch LC_ALL=C sh -c {shlex.quote(shell)}) >&2\n"
        )
        script += f"after=$(written)\nprintf 'step\\t%s\\t%s\\n' {step.name} $((after - before))\n"
    script += "find fs -type f -printf 'file\\t%P\\t%s\\n'\n"
    environment = {
        **os.environ,
        "BASE": str(base),
        "DISK_BYTES": str(DISK_BYTES),
        "TYPE": type_,
        "MKFS": MKFS[type_],
        "OPTIONS": options,
        "HOSTILE": HOSTILE,
    }
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return Ran(done.stdout)


def test_source_tree(tmp_path: Path) -> None:
    resolved = workload.resolve("source-tree", scale=0.1, options={"clean": "true"})
    files = run(resolved, tmp_path).files
    assert files["tree/program"] > 0
    assert sum(name.endswith(".o") for name in files) == 16
    assert sum(name.endswith(".c") for name in files) == 16
    (repository,) = (tmp_path / "in").glob("**/repo")
    listed = ["git", "-C", repository, "-c", "safe.directory=*", "ls-tree", "-rl", "HEAD"]
    for line in subprocess.check_output(listed, text=True).splitlines():
        *_, size, name = line.split()
        assert files[f"tree/{name}"] == int(size), "git changed its line ends"


def test_source_tree_cleans_up(tmp_path: Path) -> None:
    files = run(workload.resolve("source-tree", scale=0.1), tmp_path).files
    assert "tree/program" not in files
    assert not any(name.endswith((".o", ".d")) for name in files)


def test_source_tree_of_a_tarball(tmp_path: Path) -> None:
    source = tmp_path / "hello-1"
    source.mkdir()
    (source / "Makefile").write_text("hello: hello.c\nclean:\n\trm -f hello\n")
    (source / "hello.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(
        ["tar", "-C", tmp_path, "-cJf", tmp_path / "hello.tar.xz", "hello-1"], check=True
    )
    resolved = workload.resolve(
        "source-tree", source=tmp_path / "hello.tar.xz", options={"clean": "true"}
    )
    assert "tree/hello" in run(resolved, tmp_path).files


def test_small_files(tmp_path: Path) -> None:
    resolved = workload.resolve("small-files", scale=0.02)
    ran = run(resolved, tmp_path)
    assert not ran.files
    assert ran.written["unpack"] > 60 * 2048
    assert ran.written["unpack-over"] > 60 * 2048


def test_read_all_shows_access_times(tmp_path: Path) -> None:
    written = {}
    for options in ("strictatime", "relatime", "noatime"):
        folder = tmp_path / options
        folder.mkdir()
        written[options] = run(
            workload.resolve("read-all", scale=0.2), folder, options=options
        ).written
    assert written["strictatime"]["read"] > 100_000
    assert written["strictatime"]["read-again"] > 100_000
    assert written["relatime"]["read"] > 100_000, (
        "fresh files: the first read counts under relatime"
    )
    assert written["relatime"]["read-again"] < 20_000
    assert written["noatime"]["read"] < 20_000
    assert written["noatime"]["read-again"] < 20_000


def test_maildir_delivers_and_searching_costs_access_times(tmp_path: Path) -> None:
    written = {}
    for options in ("relatime", "noatime"):
        folder = tmp_path / options
        folder.mkdir()
        ran = run(workload.resolve("maildir", scale=0.2), folder, options=options)
        # Half of the 60 messages have an even number.
        assert len([name for name in ran.files if name.startswith("cur/")]) == 30
        assert not [name for name in ran.files if name.startswith(("new/", "tmp/"))]
        written[options] = ran.written
    assert written["relatime"]["deliver"] > 60 * 3 * 4096, "an fsync for each message"
    assert written["relatime"]["search"] > 4 * max(written["noatime"]["search"], 4096)


def test_package_install_installs_and_removes(tmp_path: Path) -> None:
    ran = run(workload.resolve("package-install", scale=0.1), tmp_path)
    assert ran.written["install"] > 60 * 4096
    assert "obeyed" not in ran.files, "dpkg read the host's configuration"
    assert not [name for name in ran.files if name.startswith("usr/")]
    assert "var/lib/dpkg/status" in ran.files


def test_container_image_leaves_nothing(tmp_path: Path) -> None:
    ran = run(workload.resolve("container-image", scale=0.05), tmp_path)
    assert not ran.files
    assert ran.written["pull"] > 3 * 60 * 4096
    assert ran.written["start"] > 0


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder with a short name, because of sockets, and with a path that every user may enter,
    like a cell's."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def test_postgresql_commits_each_transaction(open_folder: Path) -> None:
    options = {"transactions": "40"}
    ran = run(workload.resolve("postgresql", options=options), open_folder)
    assert ran.files["data/log"] > 0
    assert "data/postmaster.pid" not in ran.files
    # 100,000 accounts and their keys; then the log and the pages of 40 transactions.
    assert ran.written["load"] > 20 << 20
    assert ran.written["transactions"] > 40 * 4096


def test_browser_profile_keeps_what_pages_keep(open_folder: Path) -> None:
    ran = run(workload.resolve("browser-profile", options={"sessions": "2"}), open_folder)
    assert ran.files["profile/Default/History"] > 0
    kept = [name for name in ran.files if "Local Storage/leveldb" in name]
    assert sum(ran.files[name] for name in kept) > 2 * 65536
    assert ran.written["first-start"] > 1 << 20
    assert ran.written["sessions"] > 2 * 65536


def test_photo_import_copies_and_lists_each(tmp_path: Path) -> None:
    ran = run(workload.resolve("photo-import", scale=0.25), tmp_path)
    photos = [name for name in ran.files if name.startswith("photos/")]
    thumbnails = [name for name in ran.files if name.startswith("thumbnails/")]
    assert (len(photos), len(thumbnails)) == (8, 16)
    assert ran.written["copy"] > 24 << 20
    assert ran.written["library"] > 8 * (24_000 + 180_000)
    assert ran.files["library.db"] > 0


def test_journald_rewrites_its_first_blocks(tmp_path: Path) -> None:
    rare, often = (
        run(
            workload.resolve("journald", scale=0.2, options={"sync_every": every}),
            make_folder(tmp_path / every),
        )
        for every in ("800", "20")
    )
    assert rare.files == often.files == {"system.journal": 8 << 20}
    records = 800 * 700
    assert rare.written["log"] > records
    # Each fsync rewrites the header and 64 KiB of hash tables.
    assert often.written["log"] > rare.written["log"] + 30 * 32_768


def make_folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.parametrize("content", ["random", "text", "zeros"])
def test_big_file(content: str, tmp_path: Path) -> None:
    ran = run(workload.resolve("big-file", options={"mib": 8, "content": content}), tmp_path)
    assert ran.files == {"big": 8 << 20}
    assert ran.written["write"] >= 8 << 20
    assert ran.written["overwrite"] >= 8 << 20


def test_big_file_of_text_compresses_and_random_does_not(tmp_path: Path) -> None:
    written = {}
    for content in ("random", "text"):
        (tmp_path / content).mkdir()
        resolved = workload.resolve("big-file", options={"mib": 16, "content": content})
        written[content] = run(resolved, tmp_path / content, "btrfs", "compress=zstd").written[
            "write"
        ]
    assert written["random"] >= 16 << 20
    assert written["text"] < 10 << 20


def test_fsync_log(tmp_path: Path) -> None:
    ran = run(
        workload.resolve("fsync-log", options={"appends": 50, "record_bytes": "1000"}), tmp_path
    )
    assert ran.files == {"log": 50_000}
    assert ran.written["append"] > 50 * 4096, "each fsync writes"


def test_random_write(tmp_path: Path) -> None:
    ran = run(
        workload.resolve("random-write", options={"file_mib": 16, "writes": 512, "fsync_every": 0}),
        tmp_path,
    )
    assert dict.fromkeys(ran.files, 1 << 20) == ran.files
    assert len(ran.files) == 16
    assert 0.7 * 512 * 4096 < ran.written["random-write"] < 2 * 512 * 4096


def test_random_read_writes_access_times_only(tmp_path: Path) -> None:
    ran = run(
        workload.resolve("random-read", options={"file_mib": 16, "reads": 512}),
        tmp_path,
        options="noatime",
    )
    assert len(ran.files) == 16
    assert ran.written["random-read"] < 20_000


def test_sync_threads(tmp_path: Path) -> None:
    ran = run(workload.resolve("sync-threads", options={"thread_mib": 2}), tmp_path)
    assert ran.files == {f"thread.{i}": 2 << 20 for i in range(3)}
    for step in ("write", "rewrite", "random-write"):
        assert ran.written[step] >= 6 << 20
    assert ran.written["random-read"] < 100_000


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_sqlite(journal: str, tmp_path: Path) -> None:
    resolved = workload.resolve("sqlite", scale=0.1, options={"journal": journal})
    ran = run(resolved, tmp_path)
    assert set(ran.files) == {"database"}, (
        "closed cleanly: neither a journal nor a write-ahead log is left"
    )
    assert ran.written["insert"] > 20 * 4096
    assert ran.written["update"] > 20 * 4096


def test_sqlite_really_inserts(tmp_path: Path) -> None:
    made = inputs.prepare(workload.resolve("sqlite", scale=0.1), tmp_path)
    assert made is not None
    sql = (
        (made / "insert.sql").read_text()
        + (made / "update.sql").read_text()
        + "SELECT count(*) FROM item;"
    )
    done = subprocess.run(
        ["sqlite3", "-batch", "-bail", ":memory:"],
        input=sql,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-1] == "80"


def test_reader_beside_fsync_multiplies(tmp_path: Path) -> None:
    """The published effect: beside a neighbour's fsyncs, the same reads cost several times as much
    as alone; without access times they cost nothing."""
    extra = {}
    alone = {}
    for options in ("relatime", "noatime"):
        folder = tmp_path / options
        folder.mkdir()
        written = run(workload.resolve("reader-beside-fsync"), folder, options=options).written
        alone[options] = written["read"]
        extra[options] = written["read-beside-fsync"] - written["fsync"]
    assert alone["relatime"] > 100_000
    assert extra["relatime"] > 4 * alone["relatime"]
    assert extra["noatime"] < alone["relatime"]


def test_reader_beside_fsync_does_a_fixed_amount(tmp_path: Path) -> None:
    ran = run(workload.resolve("reader-beside-fsync", options={"files": 50, "fsyncs": 7}), tmp_path)
    assert ran.files["log"] == 2 * 7 * 4096
    assert len(ran.files) == 101


def test_reader_beside_fsync_ends_when_the_disk_is_full(tmp_path: Path) -> None:
    """The two processes wait for each other: if one fails it must end the other, not leave it
    waiting."""
    resolved = workload.resolve("reader-beside-fsync", options={"files": 20, "fsyncs": 5})
    made = inputs.prepare(resolved, tmp_path / "in")
    shell = (
        resolved.steps[-1].shell.replace("{input}", str(made)).replace("{scratch}", str(tmp_path))
    )
    (tmp_path / "together").write_text("")
    (tmp_path / "log").mkdir()  # dd cannot append to it
    done = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0


def test_snapshot_find(tmp_path: Path) -> None:
    written = {}
    for options in ("relatime", "noatime"):
        folder = tmp_path / options
        folder.mkdir()
        ran = run(
            workload.resolve("snapshot-find", options={"files": 600, "snapshots": 4}),
            folder,
            "btrfs",
            options,
        )
        assert len(ran.files) == 5 * 600
        written[options] = ran.written["find"]
    assert written["relatime"] > 1 << 20, (
        "every snapshot gets its own copy of the directories' leaves"
    )
    assert written["noatime"] < written["relatime"] / 10
