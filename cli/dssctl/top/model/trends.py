"""Trends of lag and rates: a bounded list of samples.

Invariant: samples are a fixed time apart, the newest last; equal neighbours share one value.
"""

from typing import NamedTuple

from dssctl.top.limits import SAMPLE_TICKS, TICK_S, TREND_SAMPLES

SAMPLES_A_MINUTE = round(60 / (TICK_S * SAMPLE_TICKS))
"""Over how long the change of a lag is shown."""


class Sample(NamedTuple):
    """The values of a group, or of all groups, at one moment."""

    lag: int
    arrivals: float
    """Records a second."""
    acks: float


Trend = tuple[Sample, ...]

NOTHING = Sample(0, 0.0, 0.0)


def sampled(trend: Trend, sample: Sample) -> Trend:
    """The trend with one more sample, without the oldest if there are too many."""
    if trend and trend[-1] == sample:
        sample = trend[-1]  # the same value: idle groups share it
    return (*trend[1 - TREND_SAMPLES :], sample)


def summed(samples: "list[Sample]") -> Sample:
    """The sum of the samples."""
    lag, arrivals, acks = 0, 0.0, 0.0
    for sample in samples:
        lag += sample.lag
        arrivals += sample.arrivals
        acks += sample.acks
    return Sample(lag, arrivals, acks)


def change(trend: Trend) -> int:
    """How much the lag rose over the last minute, or over the sampled part of it."""
    if not trend:
        return 0
    return trend[-1].lag - trend[max(0, len(trend) - 1 - SAMPLES_A_MINUTE)].lag


def direction(trend: Trend) -> int:
    """Whether the lag rises (1), falls (-1) or neither, over the last few samples."""
    if len(trend) < 2:
        return 0
    before, now = trend[max(0, len(trend) - _BACK)].lag, trend[-1].lag
    return (now > before) - (now < before)


_BACK = 5
"""How many samples decide on rise or fall: one alone is noise."""
