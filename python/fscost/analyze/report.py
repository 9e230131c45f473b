"""Report on a recording, from as few passes over its rows as possible."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fscost.analyze.explain import Explanation
from fscost.analyze.findings import needs, sentences
from fscost.analyze.fsyncs import Forcing, Fsyncs
from fscost.analyze.groups import (
    By,
    Group,
    Rest,
    doubtful_bytes,
    keys,
    largest,
    rows,
    total_bytes,
    unknown_bytes,
)
from fscost.analyze.journal import Journal, Journals


@dataclass(frozen=True)
class Report:
    """Report that `fscost explain` prints about one recording: the first groups, the sum of the
    others in `rest`, and the phases that wrote something."""

    explanation: Explanation
    by: By
    phases: Sequence[str]
    wrote: Sequence[str]
    write_bytes: int
    unknown_write_bytes: int
    doubtful_owner_write_bytes: int
    groups: Sequence[Group]
    rest: Rest | None
    findings: Sequence[str]
    journal: Journal | None
    fsyncs: Fsyncs | None = None

    def json(self) -> dict[str, Any]:
        """Convert to the printed JSON form."""
        found: dict[str, Any] = {
            "end": self.explanation.end,
            "families": dict(self.explanation.families),
            "phases": list(self.phases),
            "write_bytes": self.write_bytes,
            "unknown_write_bytes": self.unknown_write_bytes,
            "doubtful_owner_write_bytes": self.doubtful_owner_write_bytes,
            "by": self.by.value,
            "groups": [
                {"name": group.name, "write_bytes": group.bytes, "parts": group.parts}
                for group in self.groups
            ],
            "rest": None
            if self.rest is None
            else {
                "groups": self.rest.count,
                "write_bytes": self.rest.bytes,
                "parts": self.rest.parts,
            },
            "findings": list(self.findings),
            "journal": None if self.journal is None else self.journal.json(),
        }
        if self.fsyncs is not None:
            found["fsyncs"] = self.fsyncs.json()
        if self.journal is not None and self.by is By.TRANSACTION:
            found["journal"]["by_transaction"] = [
                {
                    "transaction": each.number,
                    "begin_ns": each.begin_ns,
                    "end_ns": each.end_ns,
                    "write_bytes": each.bytes,
                    "blocks": each.blocks,
                    "why": each.why.value,
                }
                for each in self.journal.transactions
            ]
        return found


def report(
    whole: Explanation,
    phases: Sequence[str],
    by: By,
    top: int | None,
    *,
    has_fsyncs: bool = False,
    charges_commits: bool = False,
) -> Report:
    """Report on these phases; `top` None means all groups. `has_fsyncs`: with the calls that forced
    commits; `charges_commits`: the groups charge each commit to the file whose call forced it."""
    chosen = whole.within(phases)
    journals = Journals(chosen)
    # One pass for everything; --by time needs two more.
    wanted = [keys(by)] if by is By.TRANSACTION else []
    chosen.prepare([*needs(chosen), *wanted], journals)
    journal = journals.result()
    forcing = Forcing(chosen, journal) if has_fsyncs or charges_commits else None
    grouped = forcing.charged() if forcing is not None and charges_commits else chosen
    groups, rest = largest(grouped, by, top)
    wrote = {phase for phase, *_ in rows(chosen.sums(*keys(By.PHASE)))}
    return Report(
        explanation=chosen,
        by=by,
        phases=phases,
        wrote=[phase for phase in dict.fromkeys(phases) if phase in wrote],
        write_bytes=total_bytes(chosen),
        unknown_write_bytes=unknown_bytes(chosen),
        doubtful_owner_write_bytes=doubtful_bytes(chosen),
        groups=groups,
        rest=rest,
        findings=sentences(chosen, journal),
        journal=journal,
        fsyncs=forcing.fsyncs() if forcing is not None and has_fsyncs else None,
    )
