"""Bounds and paces that several modules of the dashboard take, with units last and reasons."""

FRAME_S = 0.1
"""Between two paintings of what changed: ten a second look alive, and leave time for keys."""

TICK_S = 1.0
"""Between two ticks of the clock that is shown; ages are in seconds."""

SAMPLE_TICKS = 2
"""A trend is sampled every second tick: two minutes are sixty samples."""

TREND_SAMPLES = 60
"""Of a group: as wide as a chart is usually drawn, and some 8 KB a busy group."""

RECORDS_PAGE = 100
"""Of a stream, looked at at once; two large screens."""

LARGE_COLUMNS = 140
"""From here on there is room for a second pane."""

HEAT_FEW = 1
HEAT_SOME = 100
HEAT_MANY = 10_000
"""Lags of a stream from which it is shown a degree hotter: two decades apart, as lags spread."""
