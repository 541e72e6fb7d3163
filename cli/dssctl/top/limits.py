"""Bounds and paces that several modules of the dashboard take, with units last and reasons."""

FRAME_S = 0.1
"""The pause between two paintings of changes: ten a second look alive, and leave time for keys."""

TICK_S = 1.0
"""The pause between two ticks of the clock that is shown; ages are in seconds."""

SAMPLE_TICKS = 2
"""A trend is sampled every second tick: two minutes are sixty samples."""

TREND_SAMPLES = 60
"""How many samples of a group are kept: as wide as a chart usually is, and some 8 KB a busy
group."""

RECORDS_PAGE = 100
"""How many records of a stream are read at once: two large screens."""

LARGE_COLUMNS = 140
"""From this many columns on there is room for a second pane."""

HEAT_FEW = 1
HEAT_SOME = 100
HEAT_MANY = 10_000
"""The lags from which a stream is shown one degree hotter: two decades apart, as lags spread."""
