"""What a transfer did, per group of weights: for the log, for the work directory, for tests."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lvit_dense.transfer.canonical import GROUPS, Source, block_of, group_of, without_index
from lvit_dense.transfer.pixels import pixel_change
from lvit_dense.transfer.plan import Resolution


@dataclass(frozen=True)
class GroupReport:
    """One group of the student's weights. ``copied + computed + kept`` tensors make ``total`` (parts count as copied).

    Attributes:
        blocks: blocks with a copied or computed tensor, and blocks with the group at all; None outside blocks.
        resized: such as ``37x37->14x14``.
        random: names (block index as ``*``) that stay at their default initialisation, with reason and count.
        dropped: source names left out on purpose, likewise.
    """

    group: str
    copied: int
    computed: int
    total: int
    blocks: tuple[int, int] | None
    resized: str | None
    random: dict[str, str]
    dropped: dict[str, str]


@dataclass(frozen=True)
class TransferReport:
    """The whole transfer.

    Attributes:
        sha256: of the source file; None without a source.
        checksum: SHA-256 over the names and the values that were written.
        random: number of student tensors (parts not counted) that keep their default initialisation.
        pixels: mean and standard deviation of the pictures that a copied patch embedding was trained on, where they are
            not ImageNet's.
    """

    plan: str
    options: dict[str, Any]
    source: str | None
    family: str | None
    sha256: str | None
    checksum: str
    groups: list[GroupReport]
    random: int
    outside: dict[str, str] = field(default_factory=dict)
    pixels: dict[str, tuple[float, ...]] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form."""
        return asdict(self)

    def group(self, name: str) -> GroupReport:
        """The entry of one group."""
        return next(g for g in self.groups if g.group == name)

    def table(self) -> str:
        """Plain text: a heading, one line a group, what was left random or dropped below."""
        options = "".join(f" {key}={value}" for key, value in self.options.items())
        lines = [f"transfer {self.plan}{options} from {self.source or 'nothing'} ({self.family or 'no source'})"]
        if self.sha256:
            lines.append(f"source sha256 {self.sha256}")
        lines.append(f"written sha256 {self.checksum}; {self.random} tensors random on purpose")
        lines.append(f"{'group':<12} {'copied':>9} {'blocks':>7}  notes")
        for g in self.groups:
            blocks = f"{g.blocks[0]}/{g.blocks[1]}" if g.blocks else ""
            first, *more = _notes(g) or [""]
            lines.append(f"{g.group:<12} {f'{g.copied + g.computed}/{g.total}':>9} {blocks:>7}  {first}".rstrip())
            lines.extend(f"{'':<30}  {note}" for note in more)
        if self.pixels:
            lines.append(
                f"patch_embed was trained on pictures of mean {self.pixels['mean']}, std {self.pixels['std']}; to a "
                "student whose pictures are normalised otherwise they look shifted and scaled"
            )
        if self.outside:
            lines.append(_summary("not of the backbone, dropped", self.outside))
        return "\n".join(lines)


def make_report(
    plan: str,
    options: Mapping[str, Any],
    source: Source | None,
    resolution: Resolution,
    names: list[str],
    checksum: str,
) -> TransferReport:
    """Sum up a resolution that was carried out on a student whose state has ``names``."""
    if all(a.computed for a in resolution.assignments):
        source = None  # given, but nothing came from it
    groups = [_group_report(group, resolution, names) for group in GROUPS]
    written = {a.name for a in resolution.assignments}
    return TransferReport(
        plan=plan,
        options=dict(options),
        source=source.spec if source else None,
        family=source.family if source else None,
        sha256=source.sha256 if source else None,
        checksum=checksum,
        groups=[g for g in groups if g.total or g.dropped],
        random=len([name for name in names if name not in written]),
        outside=_merge(source.dropped) if source else {},
        pixels=_pixels(source) if source and "patch_embed.proj.weight" in written else None,
    )


def _pixels(source: Source) -> dict[str, tuple[float, ...]] | None:
    change = pixel_change(source.facts)
    if change is None or source.facts.pixel_mean is None or source.facts.pixel_std is None:
        return None
    return {"mean": source.facts.pixel_mean, "std": source.facts.pixel_std}


def _group_report(group: str, resolution: Resolution, names: list[str]) -> GroupReport:
    members = [name for name in names if group_of(name) == group]
    done = [a for a in resolution.assignments if group_of(a.name) == group]
    in_blocks = {block_of(name) for name in members} - {None}
    return GroupReport(
        group=group,
        copied=sum(not a.computed for a in done),
        computed=sum(a.computed for a in done),
        total=len(members),
        blocks=(len({block_of(a.name) for a in done}), len(in_blocks)) if in_blocks else None,
        resized=next((a.resized for a in done if a.resized), None),
        random=_merge({n: r for n, r in resolution.random.items() if group_of(n) == group}),
        dropped=_merge({n: r for n, r in resolution.dropped.items() if group_of(n.split("[")[0]) == group}),
    )


def _merge(reasons: Mapping[str, str]) -> dict[str, str]:
    """Join equal entries of several blocks into one."""
    counts = Counter((without_index(name), reason) for name, reason in reasons.items())
    return {name: reason if n == 1 else f"{reason} ({n} times)" for (name, reason), n in counts.items()}


def _notes(g: GroupReport) -> list[str]:
    notes = [f"resized {g.resized}"] if g.resized else []
    if g.computed:
        notes.append(f"{g.computed} computed")
    plain = {name: reason for name, reason in g.random.items() if not reason.startswith("not part of this plan")}
    if len(plain) < len(g.random):
        notes.append("random on purpose: not part of this plan")
    if plain:
        notes.append(_summary("random on purpose", plain))
    if g.dropped:
        notes.append(_summary("dropped on purpose", g.dropped))
    return notes


def _summary(what: str, reasons: Mapping[str, str]) -> str:
    """One line for many names: they share few reasons."""
    grouped: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        grouped.setdefault(reason, []).append(name)
    parts = [
        f"{', '.join(names[:4])}{f' and {len(names) - 4} more' if len(names) > 4 else ''} ({reason})"
        for reason, names in grouped.items()
    ]
    return f"{what}: {'; '.join(parts)}"
