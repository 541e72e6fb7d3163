"""The figures as Markdown tables."""

from collections.abc import Iterable, Sequence
from statistics import median

from dss_sim.groups.plan import Plan
from dss_sim.scale.life import Figures
from dss_sim.scale.step_costs import Costs

PINGS = ("Ping", "PingResponse")
HOUR_S = 3_600


def figures_table(plan: Plan, figures: Figures) -> str:
    """What happened in the world."""
    rows = [
        ("borrowers; groups; streams; streams lent, over all groups",
         "; ".join(f"{count:,}" for count in _sizes(plan, figures))),
        ("faults at a time of their own; of single messages and commits",
         f"{figures.faults:,}; {figures.struck:,}"),
        ("events; CPU time", f"{figures.events:,}; {figures.cpu_s:,.0f} s"),
        ("largest backlog, records over all groups; at the end",
         f"{figures.backlog_max:,}; {figures.backlog_end:,}"),
        ("all shared out after the last client came", _told(figures.settled_first_ms)),
        ("all shared out again after the last fault", _told(figures.settled_again_ms)),
        *_moves(figures, joined=True),
        *_moves(figures, joined=False),
        *_messages(figures),
        ("steps of leaders that were told of a closed session", f"{figures.closes:,}"),
    ]  # fmt: skip
    lines = ["| what | figure |", "|---|---|"]
    return "\n".join([*lines, *(f"| {what} | {figure} |" for what, figure in rows)])


def _sizes(plan: Plan, figures: Figures) -> tuple[int, ...]:
    return figures.borrowers, len(plan.groups), sum(plan.partitions), figures.lent_streams


def _told(span_ms: int | None) -> str:
    return "not within the time" if span_ms is None else f"{span_ms / 1_000:.1f} s"


def _moves(figures: Figures, *, joined: bool) -> Iterable[tuple[str, str]]:
    changes = [change for change in figures.changes if change.joined is joined]
    if changes:
        of_share = [change.moves / change.share for change in changes]
        over = sum(change.moves > change.share for change in changes)
        yield (
            f"moves a {'join' if joined else 'leave'}, of ⌈s/N⌉: median; most; how many over it",
            f"{median(of_share):.2f}; {max(of_share):.2f}; {over} of {len(changes):,}",
        )


def _messages(figures: Figures) -> Iterable[tuple[str, str]]:
    said = figures.steady.total()
    pings = sum(figures.steady[kind] for kind in PINGS)
    hours = figures.steady_s / HOUR_S
    stream_hours = hours * figures.lent_streams
    yield "messages of the group protocol in all", f"{figures.messages:,}"
    yield (
        "in the steady part, a lent stream and hour; of them no pings",
        f"{said / stream_hours:,.0f}; {(said - pings) / stream_hours:,.0f}",
    )
    yield (
        "pings and their answers, a borrower and hour",
        f"{pings / hours / max(figures.borrowers, 1):,.0f}",
    )


def costs_table(all_costs: Sequence[Costs]) -> str:
    """The costs of steps in µs, median and longest."""
    kinds = list(all_costs[0].steps)
    lines = [
        f"| s | N | {' | '.join(kinds)} | rebalance / (s log₂ s), ns |",
        f"|--:|--:|{'--:|' * len(kinds)}--:|",
    ]
    for costs in all_costs:
        cells = " | ".join(
            f"{cost.median_us:,.0f} / {cost.max_us:,.0f}" for cost in costs.steps.values()
        )
        grows = f"{costs.rebalance_ns_per_s_log_s:,.0f}"
        lines.append(f"| {costs.streams:,} | {costs.members:,} | {cells} | {grows} |")
    return "\n".join(lines)
