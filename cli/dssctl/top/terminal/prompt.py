"""The line that a command or a filter is typed into.

Invariant: a key that comes before the focus is not lost.
"""

from textual import events
from textual.widgets import Input


class Prompt(Input):
    """A line for a command or a filter."""

    def key_escape(self, event: events.Key) -> None:
        """Leave the prompt."""
        event.stop()
        self._leave()

    def take(self, event: events.Key) -> None:
        """Take a key that came before the focus."""
        if event.key == "escape":
            self._leave()
        elif event.key == "enter":
            self.post_message(self.Submitted(self, self.value))
        elif event.key == "backspace":
            self.action_delete_left()
        elif event.character is not None and event.is_printable:
            self.insert_text_at_cursor(event.character)

    def _leave(self) -> None:
        self.add_class("-left")
        self.post_message(self.Submitted(self, ""))
