"""What the dashboard knows, and which rows of it are wanted: pure, without a clock.

Invariant: nothing here knows a terminal, Textual, asyncio, or how the daemon is asked.
"""
