"""The dashboard, ``dssctl top``.

A feed reports items; `model` turns them, one after the other, into a picture; `paint` turns a
picture into lines of text; `stage` keeps the view and takes keys; `terminal` puts the lines on a
screen. Invariant: what is shown is a function of the items alone, so a recording of them shows the
same again. Only `terminal` knows Textual, only `feed` knows the daemon, and only the command knows
this package: other commands do not load it.
"""
