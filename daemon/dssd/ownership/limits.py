"""The bounds of a look at the data directory, with their units last and their reasons."""

DIRECTORY_LOOK_S = 1.0
"""How often the daemon looks whether its files are still at their paths; a look is a few calls of
`stat`. What it acknowledges until the next one may go to files that were removed."""
