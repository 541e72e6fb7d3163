"""Fields that every page of `describe` has in addition to those of its kind."""

from dssctl.fields.model import Fields, items, moment, number, text, texts

PAGE: Fields = (
    text("health", "healthy, attention or problem; of describe only.", absent=True),
    text("verdict", "That in a sentence; of describe only.", absent=True),
    texts("next", "Commands that help, or show more; of describe only.", absent=True),
    items("operations", "OperationLine", "The last ones; of describe only.", absent=True),
    items("events", "EventLine", "The last ones; of describe only.", absent=True),
)

OPERATION_LINE: Fields = (
    number("number", "Of the operation."),
    moment("applied_at", "When."),
    text("state", "running, cancelling, done, cancelled or failed."),
    text("summary", "What it does, in a sentence."),
    text("principal", "Who."),
)

EVENT_LINE: Fields = (
    number("number", "Of the event."),
    moment("at", "When."),
    text("severity", "info, warning or error."),
    text("code", "What kind of thing happened."),
    text("sentence", "What happened."),
)
