"""Fields of items about the tool itself: errors, contexts, configuration."""

from dssctl.fields.model import Fields, number, text, texts, truth

ERROR_CODE: Fields = (
    text("code", "DSS and four digits; it keeps its meaning."),
    text("name", "Of the exception in Python."),
    number("exit_code", "With which dssctl ends."),
    text("sentence", "What is said, with the names of its facts in braces."),
    text("hint", "What to do next."),
    texts("fields", "The facts that come with it."),
    truth("definite", "Whether it is certain that nothing was done."),
    text("explanation", "What it means, in a paragraph; of explain only.", absent=True),
)

VERSION: Fields = (text("name", "Of the program."), text("version", "Of the program."))

CONTEXT: Fields = (
    text("name", "Its name."),
    truth("current", "Whether it is the one in use."),
    text("endpoint", "Of the daemon.", optional=True),
    text("colour", "Of the prompt.", optional=True),
    truth("read_only", "Whether commands that change something are refused."),
    truth("protected", "Whether they ask for a reason and for a name."),
    text("default_output", "Where no -o is given.", optional=True),
    text("spark_master", "Of bulk jobs on Spark.", optional=True),
    text("token_file", "The file of the user's token there.", optional=True),
    text("tls_ca", "The file of who signs its certificate.", optional=True),
    text("tls_cert", "The file of the user's certificate there.", optional=True),
    text("tls_key", "The file of its key.", optional=True),
)

VALIDATED_CONTEXT: Fields = (
    text("name", "Of the context."),
    text("endpoint", "Of its daemon.", optional=True),
    truth("valid", "Whether the daemon answered."),
    text("version", "Of the daemon.", optional=True),
    text("problem", "Why it did not answer.", optional=True),
)

CONFIGURED_VALUE: Fields = (
    text("key", "Its name; contexts and single commands have some of them, too."),
    text("value", "That counts.", optional=True),
    text("origin", "Who gave it: a flag, a variable, a context, a file, or nobody."),
    text("variable", "The environment variable for it."),
    text("help", "What it does."),
)

FIELD: Fields = (
    text("kind", "Of the item that has it."),
    text("field", "Its name in documents, filters, orders and templates."),
    text("type", "What it holds."),
    text("help", "What it means."),
    text("column", "Its header in tables, where it has one.", optional=True),
)
