"""Fields of items about health: the doctor, checks, bundles, benches."""

from dssctl.fields.model import Fields, fraction, items, number, size, text, truth

FINDING: Fields = (
    text("level", "ok, warning or problem."),
    text("check", "What was looked at; it keeps its meaning."),
    text("text", "What was found."),
    text("remedy", "What helps.", optional=True),
)

CHECK: Fields = (
    text("check", "What was checked: lag for one."),
    text("status", "ok, warning, critical or unknown."),
    number("exit_code", "0, 1, 2 or 3, as Nagios has it."),
    text("text", "The worst that was found, in a sentence."),
    items("measured", "Measured", "Each value with its bounds."),
)

MEASURED: Fields = (
    text("label", "Of what: a group for one.", optional=True),
    fraction(
        "value", "What was measured: records, members, streams, milliseconds, bytes, a share."
    ),
    text("unit", "What ends the name of its metric."),
    fraction("warn", "From where on it is a warning.", optional=True),
    fraction("crit", "From where on it is critical.", optional=True),
    text("status", "ok, warning or critical."),
    text("note", "Why, where that is known.", optional=True),
)

SUPPORT_BUNDLE: Fields = (
    text("file", "Where it is."),
    size("bytes", "How large it is."),
    truth("names_hidden", "Whether names were taken out."),
    items("entries", "SupportEntry", "What is in it."),
    items("missing", "SupportMissing", "What could not be had."),
)

SUPPORT_ENTRY: Fields = (
    text("name", "Of the file in the bundle."),
    text("what", "What it tells."),
    size("bytes", "How long it is."),
    text("sha256", "Of its content."),
    truth("cut", "Whether its end is left out, because it is too long."),
)

SUPPORT_MISSING: Fields = (
    text("name", "Of the file that is not in the bundle."),
    text("why", "Why it is not."),
)

BENCH_PART: Fields = (
    text("part", "publish, deliver, ack or end-to-end."),
    number("records", "How many."),
    fraction("seconds", "How long that took."),
    number("records_per_s", "Records a second."),
    number("bytes_per_s", "Bytes of payload a second."),
    fraction("p50_ms", "Half took no longer; milliseconds.", optional=True),
    fraction("p90_ms", "Nine of ten took no longer; milliseconds.", optional=True),
    fraction("p99_ms", "All but a hundredth took no longer; milliseconds.", optional=True),
    fraction("max_ms", "The longest; milliseconds.", optional=True),
)
