"""Values that do not match a dataclass: one error, with its place and what is wrong."""

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from fscost import typed


@dataclass(frozen=True)
class Part(typed.ClosedTable):
    name: typed.Text


@dataclass(frozen=True, kw_only=True)
class Whole(typed.Table):
    number: typed.Int64
    share: float = 0.5
    is_on: bool = False
    state: Literal["on", "off"] = "on"
    limit: typed.Count | None = None
    parts: typed.List[Part] = field(default_factory=list)
    words: typed.Tuple[str] = ()
    by_name: typed.Dict[Part] = field(default_factory=dict)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "its content is a list, not an object"),
        ({}, "number is missing"),
        ({"number": "1"}, "number is a string, not a whole number"),
        ({"number": True}, "number is true or false, not a whole number"),
        ({"number": 1.0}, "number is a number, not a whole number"),
        ({"number": None}, "number is null, not a whole number"),
        ({"number": 1 << 63}, "number does not fit 64 bits"),
        ({"number": -(1 << 63) - 1}, "number does not fit 64 bits"),
        ({"number": 10**5000}, "number does not fit 64 bits"),
        ({"number": 1, "share": None}, "share is null, not a number"),
        ({"number": 1, "share": float("nan")}, "share is not a finite number"),
        ({"number": 1, "share": 10**400}, "share is not a finite number"),
        ({"number": 1, "is_on": 1}, "is_on is a number, not true or false"),
        ({"number": 1, "state": "asleep"}, "state is 'asleep', not 'on' or 'off'"),
        ({"number": 1, "state": 10**5000}, "state is a number, not 'on' or 'off'"),
        ({"number": 1, "state": "\ud800"}, "state holds a string or name that is not valid"),
        ({"number": 1, "limit": -1}, "limit is less than 0"),
        ({"number": 1, "words": "ab"}, "words is a string, not a list"),
        ({"number": 1, "words": ["a", None]}, "words[1] is null, not a string"),
        ({"number": 1, "parts": [{"name": ""}]}, "parts[0].name is empty"),
        ({"number": 1, "parts": [{"nam": "x"}]}, "parts[0].nam: no such field; there are name"),
        ({"number": 1, "by_name": {"a": {"b": 1}}}, "by_name.a.b: no such field; there are name"),
        ({"number": 1, "by_name": {"a\x1b": 1}}, r"by_name.'a\x1b' is a number, not an object"),
    ],
)
def test_the_first_wrong_field_is_named(value: Any, said: str) -> None:
    with pytest.raises(typed.InvalidError) as caught:
        typed.read(Whole, value)
    assert str(caught.value).startswith(said)


def test_what_matches_is_an_instance() -> None:
    value = {"number": 1, "share": 2, "limit": None, "words": ["a"], "unknown": 1}
    found = typed.read(Whole, value | {"words": ["\udcff"], "parts": [{"name": "x"}]})
    assert found == Whole(number=1, share=2.0, words=("\udcff",), parts=[Part("x")])
    assert isinstance(found.share, float)


@pytest.mark.parametrize(
    "value", [{"parts": [1] * 100_000}, {"by_name": dict.fromkeys(map(str, range(100_000)))}]
)
def test_many_errors_are_not_collected(value: Any) -> None:
    """Each error would take a kilobyte."""
    with pytest.raises(typed.InvalidError) as caught:
        typed.read(Whole, {"number": 1, **value})
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (".".join("a" * 30_000) + " = 1", "dotted key of more than 16 parts"),
        ("a=1\n[" + ".".join('"a"' for _ in range(20)) + "]", r"16 parts \(at line 2\)"),
        (".".join([r'"\""'] * 17) + " = 1", "more than 16 parts"),
        ("[a." + ".".join([r'"\\"'] * 16) + "]", "more than 16 parts"),
        ("[[" + " .\t".join([r'"\u0022"'] * 17) + "]]", "more than 16 parts"),
        ("a = {" + ".".join(["'\"'"] * 17) + " = 1}", "more than 16 parts"),
        ("# \\\n" + ".".join("a" * 17) + " = 1", r"16 parts \(at line 2\)"),
        ("a = " + "1" * 5000, "4300 digits"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a =", "Invalid value"),
    ],
)
def test_hostile_toml_is_one_error(text: str, said: str) -> None:
    """A dotted key of 30,000 parts took two minutes and 2 GB."""
    with pytest.raises(ValueError, match=said):
        typed.toml(text)


@pytest.mark.parametrize("quotes", [r"\"", r"\\\"", "\"'", '"x'])
def test_many_quotes_are_searched_once(quotes: str) -> None:
    """A search that begins at each quote, and reads to the end of the line, takes an hour."""
    with pytest.raises(ValueError, match=r"at (end of document|line 1)"):
        typed.toml('"' + quotes * (1 << 19))


def test_ordinary_toml_is_read() -> None:
    long = "x" * (1 << 20)
    text = f'a.b.c = "1.2.3"\nd = "{long}"\n[e."f.g"]\nh = """\n{"a. " * 10}"""\n'
    assert typed.toml(text)["e"] == {"f.g": {"h": "a. " * 10}}
