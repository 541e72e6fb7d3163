"""The dashboard, ``dssctl top``.

A feed tells items; `model` makes of them, one after the other, a picture; `paint` makes of a
picture lines of text; `widgets` and `screens` put these on a terminal and take keys. Invariant:
what is shown is a function of the items alone, so that a recording of them shows the same again.
Only `widgets` and `screens` know Textual, only `feed` knows the daemon, and nothing but the command
knows this package: whoever does not look pays nothing for it.
"""
