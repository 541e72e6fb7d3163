"""The data of the dashboard, and which rows are wanted: pure, without a clock.

Invariant: nothing here knows a terminal, Textual, asyncio, or how the daemon is asked.
"""
