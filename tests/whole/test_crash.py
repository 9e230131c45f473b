"""Power cuts of real file systems: what is known to be safe is, and what is not is not."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.schemas import valid

pytestmark = pytest.mark.root

PROGRAM = (
    sys.executable,
    "-c",
    "import sys; sys.argv[0] = 'fscost'; from fscost.cli import main; main()",
)
RESULTS = ("cells", "crash", "crash.json", "crash.journal", "manifest.json", "samples.parquet")
RESULTS += ("minimised",)
FEW = ("--rounds", "2", "--cuts", "6", "--states", "8", "--wait")


def start(folder: Path, *words: str) -> "subprocess.Popen[str]":
    command = [*PROGRAM, "crash", *FEW, *words]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def left_behind(folder: Path) -> list[str]:
    """Return mounts, loop devices and files that remain of a run, beside its results."""
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    loops = subprocess.run(
        ["losetup", "--list", "--noheadings", "--output", "BACK-FILE"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    found = [line for line in (*mounts, *loops) if str(folder) in line]
    return [*found, *more_files(folder)]


def more_files(folder: Path) -> list[str]:
    """Return the files of runs that are no results."""
    runs = [manifest.parent for manifest in folder.rglob("manifest.json")]
    return [str(each) for run in runs for each in run.iterdir() if each.name not in RESULTS]


def test_barriers_and_journals_decide_what_survives(tmp_path: Path) -> None:
    """ext4 keeps its promises, even in states in which its latest flush was not followed by
    anything. Without barriers, it loses what it acknowledged; ext2 always needs fsck."""
    stale = "ext4 -o data=writeback,nodelalloc"
    profiles = ("ext4", "ext4 -o nobarrier", stale, "ext2", "xfs", "btrfs")
    words = [word for name in profiles for word in ("--on", name)]
    run = start(tmp_path, *words, "--no-minimise", "--json")
    out, err = run.communicate()
    assert run.returncode == 0, err
    found = valid(out)
    rows = {row["profile"]: row for row in found["rows"]}
    assert list(rows) == list(profiles)
    assert {name: row["verdict"] for name, row in rows.items()} == {
        "ext4": "SAFE",
        "ext4 -o nobarrier": "LOSES-ACKED",
        stale: "EXPOSES-STALE",
        "ext2": rows["ext2"]["verdict"],
        "xfs": "SAFE",
        "btrfs": "SAFE",
    }
    assert all(0 < row["states"] <= row["states_tried"] for row in rows.values())
    # Without a journal, even a rename that follows is too much for a durable file, at times.
    assert rows["ext2"]["verdict"] in ("NEEDS-REPAIR", "LOSES-ACKED")
    # xfs renames without waiting for the data of the new file.
    assert rows["xfs"]["emptied"] > 0
    assert rows["ext4"]["device_flushes"] > 8 * rows["ext4 -o nobarrier"]["device_flushes"]
    assert "pending blocks kept" in rows["ext4 -o nobarrier"]["example"]
    counts = {name: f"{name} ({rows[name]['states']:,} states)" for name in rows}
    safe = ", ".join(counts[name] for name in ("ext4", "xfs", "btrfs"))
    lost = rows["ext4 -o nobarrier"]
    told = f"LOSES-ACKED: ext4 -o nobarrier ({lost['lost']:,} of {lost['states']:,} states)"
    assert told in found["answer"]
    assert found["answer"].endswith(f"SAFE: {safe}.")
    [controlled] = found["controls"]
    assert controlled["noticed"] > 0, controlled
    assert left_behind(tmp_path) == []


JOURNAL, LOG = "ext4 -J device={disk.journal}", "xfs -l logdev={disk.log}"


def test_several_disks_lose_their_power_at_one_instant(tmp_path: Path) -> None:
    """A journal on another disk is found again by its role, not by the device number of its
    mkfs."""
    profile = f"{JOURNAL} -o nobarrier"
    run = start(tmp_path, "--on", profile, "--no-minimise", "--json", "-o", "run")
    out, err = run.communicate()
    assert run.returncode == 0, err
    [row] = valid(out)["rows"]
    assert row["verdict"] == "LOSES-ACKED"
    number = row["example"].split()[1].strip(",")
    command = [*PROGRAM, "crash", "run", "--state", number, "--image", "state.img", "--json"]
    told = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert {row["disk"] for row in valid(told.stdout)["rows"]} == {"main", "journal"}
    images = [str(tmp_path / name) for name in ("state.img.journal", "state.img")]
    check = ["e2fsck", "-fy", "-j", *images]
    assert subprocess.run(check, check=False, capture_output=True).returncode in (0, 1)
    assert left_behind(tmp_path) == []


def test_a_lost_disk_and_the_ways_back(tmp_path: Path) -> None:
    """ext4 notices that its journal is empty, and xfs takes an empty log for one that was
    unmounted (fs/xfs/xfs_log_recover.c, xlog_find_zeroed). A mirror keeps everything."""
    few = ("--rounds", "1", "--cuts", "3", "--states", "4")
    run = start(
        tmp_path,
        *few,
        "--on",
        JOURNAL,
        "--on",
        LOG,
        "--on",
        "btrfs-raid1",
        "--lose-disks",
        "--json",
    )
    out, err = run.communicate()
    assert run.returncode == 0, err
    found = valid(out)
    assert [row["verdict"] for row in found["rows"]] == ["SAFE"] * 3
    lost = {(row["profile"], row["disk"], row["how"], row["way"]): row for row in found["lost"]}
    for profile, disk in ((JOURNAL, "journal"), (LOG, "log"), ("btrfs-raid1", "mirror")):
        assert lost[profile, disk, "gone", "mount"]["mounts"] == 0
        backs = [row for row in found["lost"] if row["profile"] == profile and row["clean"]]
        assert any(row["how"] == "gone" and not row["is_read_only"] for row in backs), profile
    assert lost[JOURNAL, "journal", "blank", "mount"]["mounts"] == 0
    # Metadata that was already written in place, which takes load or time, has a place in the log
    # ahead of an empty one, and the mount fails (xfs_log_check_lsn).
    silent = lost[LOG, "log", "blank", "mount"]
    assert silent["mounts"] > silent["whole"] or not silent["mounts"]
    degraded = lost["btrfs-raid1", "main", "gone", "mount -o degraded"]
    assert degraded["clean"] == degraded["tried"] > 0
    assert left_behind(tmp_path) == []


def test_sqlite_loses_its_last_transaction_unless_it_syncs_the_folder(tmp_path: Path) -> None:
    """SQLite deletes its journal to commit, and syncs the folder only with synchronous=EXTRA
    (https://www.sqlite.org/pragma.html#pragma_synchronous)."""
    verdicts = {}
    for workload in ("sqlite", "sqlite-extra"):
        run = start(tmp_path, "--on", "ext4", "--workload", workload, "--json", "-o", workload)
        out, err = run.communicate()
        assert run.returncode == 0, err
        [row] = valid(out)["rows"]
        verdicts[workload] = row["verdict"]
    assert verdicts == {"sqlite": "LOSES-ACKED", "sqlite-extra": "SAFE"}


@pytest.mark.long
def test_known_faults_are_found_and_no_others(tmp_path: Path) -> None:
    few = ("--rounds", "5", "--cuts", "14", "--states", "10")
    command = [*PROGRAM, "crash", "--controls", *few, "--wait", "--json"]
    told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    found = valid(told.stdout)
    assert [row for row in found["rows"] if not row["is_right"]] == []
    assert (told.returncode, len(found["rows"])) == (0, 16)
    assert left_behind(tmp_path) == []


@pytest.mark.skipif(
    not Path("/usr/lib/postgresql").exists(),
    reason="PostgreSQL's server is missing: apt install postgresql",
)
def test_postgresql_recovers_what_it_committed(tmp_path: Path) -> None:
    """Its own crash recovery is the judge. Without flushes, it finds its log damaged, or less than
    it committed."""
    bad = "ext4 -o nobarrier"
    few = ("--rounds", "2", "--workload", "postgresql", "--no-minimise")
    run = start(tmp_path, "--on", "ext4", "--on", bad, *few, "--json")
    out, err = run.communicate()
    assert run.returncode == 0, err
    rows = {row["profile"]: row for row in valid(out)["rows"]}
    assert (rows["ext4"]["verdict"], rows["ext4"]["promises"]) == ("SAFE", 8)
    assert rows[bad]["verdict"] == "CORRUPTS"
    assert left_behind(tmp_path) == []


APPEND = """
import os
for number in range(6):
    with open("log", "a") as log:
        log.write(f"record {number} " * 200)
        log.flush()
        os.fsync(log.fileno())
"""


def test_any_command_is_held_to_its_fsyncs(tmp_path: Path) -> None:
    """The command says nothing: its promises are what its files held when fsync returned."""
    (tmp_path / "append.py").write_text(APPEND)
    command = ("--prepare", "touch log", "--", "python3", "{here}/append.py")
    profiles = ("--on", "ext4", "--on", "ext4 -o nobarrier")
    run = start(tmp_path, *profiles, "--json", "-o", "run", *command)
    out, err = run.communicate()
    assert run.returncode == 0, err
    found = valid(out)
    assert {row["profile"]: row["verdict"] for row in found["rows"]} == {
        "ext4": "SAFE",
        "ext4 -o nobarrier": "LOSES-ACKED",
    }
    assert [row["promises"] for row in found["rows"]] == [6, 6]
    assert found["workload"] == "command"
    number = found["rows"][1]["example"].split()[1].strip(",")
    again = [*PROGRAM, "crash", "run", "--profile", "ext4 -o nobarrier", "--state", number]
    told = subprocess.run(again, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "log" in told.stdout
    assert "is not what was promised" in told.stdout
    assert left_behind(tmp_path) == []


def test_sequences_of_system_calls(tmp_path: Path) -> None:
    """Each ends with fsync or fdatasync, whose promises are read from the recording."""
    words = ("--workload", "sequences-2", "--rounds", "3", "--on", "ext4 -o nobarrier")
    run = start(tmp_path, *words, "--on", "ext4", "--json", "-o", "run")
    out, err = run.communicate()
    assert run.returncode == 0, err
    rows = valid(out)["rows"]
    assert [row["verdict"] for row in rows] == ["LOSES-ACKED", "SAFE"]
    assert [row["promises"] for row in rows] == [30, 30]
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(
    ("profile", "words"),
    [
        ("ext4 -o nobarrier", ("--workload", "sequences-2", "--rounds", "1")),
        ("ext2", ("--workload", "files")),
    ],
)
def test_the_fewest_operations_have_a_run_of_their_own(
    tmp_path: Path, profile: str, words: tuple[str, ...]
) -> None:
    """Each of them makes a promise, or lets ext2 change its metadata: at most a few are needed."""
    run = start(tmp_path, "--on", profile, *words, "--json", "-o", "run")
    out, err = run.communicate()
    assert run.returncode == 0, err
    [row] = valid(out)["rows"]
    less = row["reduced"]
    assert 0 < less["rounds"] * len(less["operations"]) < less["before"], less
    assert less["trials"] > 0
    assert f"state {less['number']}, " in row["example"]
    own = tmp_path / "run" / less["folder"]
    command = [*PROGRAM, "crash", str(own), "--wait", "--state", str(less["state"])]
    command += ["--script", "case.sh", "--xfstests", "999", "--json"]
    told = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert valid(told.stdout)["faults"]
    script = (tmp_path / "case.sh").read_text()
    if profile == "ext2":
        assert less["workload"] == f"files: {', '.join(less['operations'])}"
        assert ("promised log" in script) == ("log" in less["operations"])
    else:
        # The disk has no other sequence.
        assert less["workload"] == ", ".join(less["operations"])
        assert f"mkdir '0000 {less['workload']}'" in script
    broken = subprocess.run(["sh", "case.sh"], cwd=tmp_path, capture_output=True, check=False)
    assert broken.returncode == 1, broken
    assert sorted(each.name for each in own.parent.iterdir()) == ["1"]
    assert left_behind(tmp_path) == []
    again = ("run", "--no-minimise", *FEW[2:], "--json")
    told = subprocess.run(
        [*PROGRAM, "crash", *again], cwd=tmp_path, check=True, capture_output=True
    )
    [row] = valid(told.stdout.decode())["rows"]
    assert (row["minimised"], row["reduced"]) == (None, None)


def test_a_state_tells_what_it_lost(tmp_path: Path) -> None:
    """On a disk that keeps the order of writes, what was lost came last. e2fsck finds the disk of
    the state in order, and the file that was promised is not in it."""
    profile = "ext4 -o nobarrier"
    run = start(tmp_path, "--on", profile, "--device", "in-order", "-o", "run")
    out, err = run.communicate()
    assert run.returncode == 0, err
    option = next(line for line in out.splitlines() if line.startswith("What that state lost"))
    words = option.partition("fscost crash ")[2].split()
    # The earlier run's limits are not needed again.
    command = [*PROGRAM, "crash", *words, "--json", "--image", "state.img"]
    told = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    found = valid(told.stdout)
    assert (found["profile"], found["device"]) == (profile, "in-order")
    assert "Enough to break it" in out
    assert any("is not what was promised" in fault for fault in found["faults"])
    rows = found["rows"]
    assert rows
    lost = [row for row in rows if not row["is_kept"]]
    assert lost == rows[-len(lost) :]
    assert any(row["structure"].startswith("journal_") for row in lost)
    assert sum(row["length"] for row in rows) % 4096 == 0
    check = ["e2fsck", "-fy", tmp_path / "state.img"]
    assert subprocess.run(check, check=False, capture_output=True).returncode in (0, 1)
    # Less is enough, but still the last: the blocks of this disk are lost in order.
    less = [*PROGRAM, "crash", *words, "--minimise", "--json"]
    told = subprocess.run(less, cwd=tmp_path, check=True, capture_output=True, text=True)
    minimised = valid(told.stdout)
    assert minimised["faults"][0].split()[0] == found["faults"][0].split()[0]
    about, rows = minimised["minimised"], minimised["rows"]
    assert 0 < about["lost"] <= about["lost_before"]
    assert about["is_minimal"]
    # The examination had found the same.
    assert {**about, "trials": 0} == {**found["minimised"], "trials": 0}
    lost = [row for row in rows if not row["is_kept"]]
    assert sum(row["length"] for row in lost) == 4096 * about["lost"]
    assert lost == rows[-len(lost) :]
    again = [*PROGRAM, "crash", "run", "--device", "power-loss-protected", "--cuts", "3", "--json"]
    told = subprocess.run(again, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert valid(told.stdout)["device"] == "power-loss-protected"
    brief = [*PROGRAM, "crash", "run", "--device", "power-loss-protected", "--cuts", "2", "--brief"]
    told = subprocess.run(brief, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert told.stdout.startswith(f"SAFE: {profile} (")
    assert told.stdout.count("\n") == 1
    assert left_behind(tmp_path) == []


def cut_again(tmp_path: Path, profile: str) -> dict[str, Any]:
    few = ("--rounds", "1", "--cuts", "4", "--states", "4", "--again", "4")
    run = start(tmp_path, *few, "--on", profile, "--json", "-o", "run")
    out, err = run.communicate()
    assert run.returncode == 0, err
    return valid(out)


def test_a_recovery_is_cut_again(tmp_path: Path) -> None:
    """jbd2 flushes what it replays before it empties its journal (fs/jbd2/recovery.c,
    jbd2_journal_recover). Without its flushes, a second cut loses what the first one kept."""
    found = cut_again(tmp_path, "ext4")
    [row] = found["again"]
    assert row["states"] > row["recoveries"] > 0
    assert (row["broken"], row["example"]) == (0, "")
    [controlled] = found["again_controls"]
    assert 0 < controlled["broken"] <= controlled["states"]
    assert left_behind(tmp_path) == []


@pytest.mark.long
def test_a_recovery_without_barriers_is_broken(tmp_path: Path) -> None:
    """Usually, a few of 36 second states are: which they are depends on the run."""
    [row] = cut_again(tmp_path, "ext4 -o nobarrier")["again"]
    assert row["broken"] > 0
    number = row["example"].split()[1].strip(",")
    first, _, second = number.partition(".")
    command = [*PROGRAM, "crash", "run", "--state", number]
    command += ["--image", "state.img", "--json"]
    told = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    shown = valid(told.stdout)
    assert (shown["state"], shown["second"]) == (int(first), int(second))
    assert shown["faults"]
    # The blocks are those of the recovery.
    assert any(row["structure"] == "journal_superblock" for row in shown["rows"])
    assert (tmp_path / "state.img").stat().st_size == 512 << 20
    assert left_behind(tmp_path) == []


def test_bytes_and_safety_stand_in_one_table(tmp_path: Path) -> None:
    profiles = ("--on", "ext4 -o nobarrier", "--on", "btrfs-raid1", "--on", "ext4")
    words = (
        "--crash",
        "--repetitions",
        "1",
        "--out",
        "run",
        "--wait",
        "--",
        "head -c 9000 /dev/zero > f",
    )
    command = [*PROGRAM, "compare", *profiles, *words]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    show = [*PROGRAM, "show", "run", "--markdown", "-"]
    shown = subprocess.run(show, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    rows = [line.split("|")[1:-1] for line in shown.splitlines() if line.startswith("| ")]
    place = [cell.strip() for cell in rows[0]].index("power cut")
    cut = {row[0].strip(): row[place].strip() for row in rows if len(row) == len(rows[0])}
    assert (cut["ext4"], cut["btrfs-raid1"]) == ("SAFE", "SAFE")
    assert cut["ext4 -o nobarrier"] == "LOSES-ACKED"
    assert "fscost crash run/crash tells more" in shown
    told = [*PROGRAM, "show", "run", "--json"]
    shown = subprocess.run(told, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert valid(shown)["power_cut"]["ext4"] == "SAFE"
    # The run itself called nothing that promises, and its recordings can be examined too.
    own = [*PROGRAM, "crash", "run", "--cuts", "2", "--states", "4", "--json", "--wait"]
    shown = subprocess.run(own, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    found = valid(shown)
    assert found["workload"] == "command"
    assert {row["promises"] for row in found["rows"]} == {0}
    assert any("neither fsync nor fdatasync" in note for note in found["notes"])
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_signal_leaves_nothing_behind(tmp_path: Path, number: signal.Signals, code: int) -> None:
    run = start(tmp_path, "--on", "ext4", "--on", "ext3", "--on", "btrfs", "-o", "here")
    assert run.stderr is not None
    for line in run.stderr:
        if line.startswith("ext4: ") and line.endswith("states\n"):
            break
    run.send_signal(number)
    out, err = run.communicate()
    assert run.returncode == code, (out, err)
    assert "Traceback" not in err
    assert more_files(tmp_path) == []
    while number == signal.SIGKILL and left_behind(tmp_path):
        time.sleep(0.1)  # The programs that examine states end with their standard input.
    assert left_behind(tmp_path) == []
    # What was examined is not examined again, and the answer is that of an examination at once.
    assert number == signal.SIGKILL or "fscost crash --resume here" in err
    assert len((tmp_path / "here/crash.journal").read_text().splitlines()) > 2
    found = []
    for words in (("--resume", "here"), ("here", *FEW[2:])):
        command = [*PROGRAM, "crash", *words, "--json", "--wait"]
        told = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        found.append(valid(told.stdout))
    assert found[0] == found[1]
    assert not (tmp_path / "here/crash.journal").exists()


def test_a_taken_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_bytes(b"old")
    run = start(tmp_path, "--on", "ext4", "--out", "taken")
    out, err = run.communicate()
    assert (run.returncode, out) == (2, ""), err
    assert (tmp_path / "taken").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--lab", "native", "--on", "f2fs"), "f2fs: this kernel cannot examine states of f2fs"),
        (("--lab", "cloud"), "--lab 'cloud' is unknown"),
        (("--lab", "native", "--kernel", "6.12"), "--kernel is for guests"),
        (("--lab", "native", "--on", "ext4-raid1"), "an md array, which guests assemble"),
        (("--workload", "mail"), "workload 'mail' is unknown"),
        (("--workload", "reboot, fsync A"), "'reboot' is no call of a sequence"),
        (("--device", "perfect"), "--device 'perfect' is unknown"),
        (("--on", "ext4 --no-such"), "no-such"),
        (("--resume", "none", "--on", "ext4"), "--resume and --on cannot be combined"),
        (("--resume", "none"), "--resume and --rounds cannot be combined"),
        (("--state", "1"), "--state needs a RUN"),
        (("--trust",), "--trust needs a RUN"),
        (("none", "--state", "1.2", "--minimise"), "--minimise needs the --state of a first cut"),
        (("--script", "x"), "--script and --xfstests need the --state of a first cut"),
        (("none", "--state", "1.2", "--xfstests", "x"), "need the --state of a first cut"),
        (("none", "--workload", "sqlite"), "RUN and --workload cannot be combined"),
        (("none", "--state", "1", "--device", "in-order"), "--state and --device cannot be"),
        (("none", "--state", "1", "--lose-disks"), "--state and --lose-disks cannot be"),
        (("--image", "x"), "need --state"),
        (("no-such-run",), "no-such-run holds no run"),
        (("no-such-run", "--on", "ext4"), "RUN was measured already"),
        (("one", "two"), "'two' is one word too many"),
        (("no-such-run", "--", "true"), "'no-such-run' is one word too many"),
        (("--workload", "sqlite", "--", "true"), "two workloads"),
        (("--controls", "--on", "xfs"), "--controls and --on cannot be combined"),
        (("--controls", "--lab", "vm"), "--controls and --lab cannot be combined"),
        (("--prepare", "true"), "--prepare needs a command"),
        (("--brief", "--json"), "--brief prints the answer alone"),
        (("none", "--state", "1", "--brief"), "--brief and --state cannot be combined"),
    ],
)
def test_what_cannot_be_examined_is_refused_before_any_cell(
    tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    run = start(tmp_path, *words)
    out, err = run.communicate()
    assert (run.returncode, out) == (2, ""), err
    assert message in err
    assert "Traceback" not in err
    assert not list(tmp_path.iterdir())
