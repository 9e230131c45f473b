"""Changes between two runs as JUnit test cases, which CI services show."""

from collections.abc import Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from fscost.view.changes import Change, Changes, Condition

_SUITE = "fscost diff"


def junit(found: Changes, conditions: Sequence[Condition]) -> str:
    """Return a test case for each condition and profile: it fails if the condition holds. Without
    conditions, a test case for each change: it fails if it is a regression."""
    cases = list(_judged(found, conditions) if conditions else _regressions(found))
    failures = sum(bool(failure) for *_, failure in cases)
    suite = Element("testsuite", name=_SUITE, tests=str(len(cases)), failures=str(failures))
    for profile, name, told, failure in cases:
        case = SubElement(suite, "testcase", classname=profile, name=name)
        if failure:
            SubElement(case, "failure", message=failure).text = told
        else:
            SubElement(case, "system-out").text = told
    indent(suite)
    return tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


_Case = tuple[str, str, str, str]
"""Profile, name, values, and why it fails; empty if it does not."""


def _judged(found: Changes, conditions: Sequence[Condition]) -> Iterator[_Case]:
    for condition in conditions:
        held = condition.holds(found)
        for change in found.changes:
            if change.metric == condition.metric:
                failure = f"{condition.text}: {change.ratio_text}" if change in held else ""
                yield change.profile, f"not {condition.text}", change.ratio_text, failure


def _regressions(found: Changes) -> Iterator[_Case]:
    for change in found.changes:
        failure = f"{change.metric}: {change.ratio_text}" if change.is_regression else ""
        yield change.profile, change.metric, _text(change), failure


def _text(change: Change) -> str:
    verdict = f"undecided: {change.because}" if change.because else change.verdict.value
    return f"{change.ratio_text}, {verdict}, n = {change.n}"
