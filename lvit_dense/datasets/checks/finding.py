"""One thing wrong with the data: where, what, what was expected, and what to do about it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """What a check found.

    Args:
        kind: short name, the same for all findings of one sort, such as ``"undecodable"``.
        file: the file or folder concerned; for an annotation, its JSON file.
        value: what was found there.
        expected: what should be there; empty when nothing is wrong with it.
        cure: what to do.
        fatal: training or evaluation would fail or be wrong; False = worth knowing.
        picture: the picture that ``--skip-bad`` leaves out for this.
        annotation: the id of the COCO annotation that ``--skip-bad`` leaves out for this.
    """

    kind: str
    file: str
    value: str
    expected: str
    cure: str
    fatal: bool = True
    picture: str | None = None
    annotation: int | None = None

    def line(self) -> str:
        """Everything in one line."""
        expected = f"; expected {self.expected}" if self.expected else ""
        return f"{self.file}: {self.value}{expected}. {self.cure}"


class DataError(ValueError):
    """Data that cannot be trained or tested on; the message is one line with cause and cure.

    Args:
        findings: the fatal findings, at least one; the first gives the message.
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = list(findings)
        more = len(self.findings) - 1
        tail = f" (and {more} more: tools/check_data.py CONFIG lists all)" if more else ""
        super().__init__(self.findings[0].line() + tail)


def raise_fatal(findings: Iterable[Finding]) -> None:
    """Raise DataError when any of the findings is fatal."""
    fatal = [finding for finding in findings if finding.fatal]
    if fatal:
        raise DataError(fatal)


def counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Findings by kind, the most frequent first."""
    return dict(Counter(finding.kind for finding in findings).most_common())


def report(findings: Sequence[Finding], checked: dict[str, Any]) -> dict[str, Any]:
    """What ``--report`` writes: counts by kind, what was looked at, and every finding."""
    return {
        "fatal": sum(finding.fatal for finding in findings),
        "counts": counts(findings),
        "checked": checked,
        "findings": [asdict(finding) for finding in findings],
    }
