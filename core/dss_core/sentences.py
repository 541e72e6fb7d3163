"""Sentences that end with what somebody else said: an error, a person's reason.

Invariant: a sentence has one full stop at its end. This module knows no sentence.
"""

_ENDS = (".", "?", "!", "…")


def as_sentence(text: str) -> str:
    """The text with a full stop, unless it is a sentence already."""
    return text if text.endswith(_ENDS) else f"{text}."
