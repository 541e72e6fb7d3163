"""Bounds and paces that several modules of the dashboard take, with units last and reasons."""

FRAME_S = 0.1
"""Between two paintings of what changed: ten a second look alive, and leave time for keys."""

FEED_REST_S = 0.02
FEED_REST_ITEM_S = 0.000_04
"""Nothing is read so long after all that was told, and so much longer for each item of it: twice
what making an item takes, so that two thirds of the time are left for keys."""

TICK_S = 1.0
"""Between two ticks of the clock that is shown; ages are in seconds."""

STATUS_S = 1.0
"""Between two questions after the daemon itself: a loss is noticed within this."""

LISTS_S = 5.0
"""Between two lists of topics and schedules, and of what does not move: no watch tells of them."""

STUCK_REST = 20
"""After what does not move was asked, it is not asked for so many times as long as that took: each
stream of each group is looked at."""

LOOK_S = 2.0
"""Between two looks at what is open and no watch tells of: what is out, why the floor stands."""

CALL_S = 5.0
"""A question of the dashboard that takes longer has failed; the next one is asked anyway."""

AWAY_FIRST_S = 0.2
AWAY_MAX_S = 2.0
"""Between attempts at a daemon that is away: doubling between these."""

SAMPLE_TICKS = 2
"""A trend is sampled every second tick: two minutes are sixty samples."""

SAMPLES_A_MINUTE = round(60 / (TICK_S * SAMPLE_TICKS))
"""How far back the change of a lag is told."""

TREND_SAMPLES = 60
"""Of a group: as wide as a chart is usually drawn, and some 8 KB a busy group."""

EVENTS_KEPT = 500
"""Behind the newest; ten screens."""

EVENTS_BEFORE = 50
"""Of those that happened before the dashboard began: a screen full."""

RECORDS_PAGE = 100
"""Of a stream, looked at at once; two large screens."""

RECORDING_BYTES_MAX = 1 << 30
"""Of a recording; then it ends, and says so. A day of a busy daemon."""

RECORDING_LINE_BYTES_MAX = 64 << 20
"""Of one line of a recording that is read: the first picture of 65,536 streams is less."""

LARGE_COLUMNS = 140
"""From here on there is room for a second pane."""

COLUMN_GAP = 1
"""Between two columns of a list; every column of text ends in blanks anyway."""

HEAT_FEW = 1
HEAT_SOME = 100
HEAT_MANY = 10_000
"""Lags of a stream from which it is shown a degree hotter: two decades apart, as lags spread."""
