"""Explained bytes equal the bytes that the kernel counted, exactly."""

from fscost import conservation


def test_a_byte_too_many_is_told_with_both_numbers_and_its_disk() -> None:
    phases = {
        ("work", ""): (4096.0, 4096.0),
        ("work", "main"): (4097.0, 4096.0),
        ("end", ""): (0.0, 512.0),
    }
    assert conservation.unexplained(phases) == [
        "work, disk main: 4097 bytes explained, 4096 written by the kernel's counter",
        "end: 0 bytes explained, 512 written by the kernel's counter",
    ]
