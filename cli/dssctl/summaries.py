"""What the help of a noun says of each verb.

Invariant: the first sentence is there whole, over a few lines where it is long; Typer would cut it
where a line ends. This module knows no command.
"""

from typer.core import TyperCommand

SUMMARY_CHARACTERS_MAX = 400
"""Of a verb in the help of its noun: any first sentence, over a few lines."""


class Summarized(TyperCommand):
    """A command with a whole first sentence."""

    def get_short_help_str(self, limit: int = SUMMARY_CHARACTERS_MAX) -> str:
        """The first sentence of its help, whatever room a line has."""
        return super().get_short_help_str(max(limit, SUMMARY_CHARACTERS_MAX))
