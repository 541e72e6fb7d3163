"""What went wrong in the program that calls: DSS115x."""

PROGRAMS = {
    "DSS1151": """A file could not be written: its folder is not there or not yours, the disk is
        full, or something else than a folder stands in its way. Nothing was changed; what was
        there before is there still.""",
}
