"""Turns a picture into lines of text: pure, the same for every terminal.

Invariant: a line consists of spans, each with a text and the name of its look; the colours of the
looks are not known here, and the text alone says everything. Texts of the daemon or of records are
made safe to print before they become spans.
"""
