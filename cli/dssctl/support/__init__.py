"""``dssctl support``: a bundle of facts for the person who helps.

Invariant: no record is ever read for it, so no payload, key or header is in it. Names may be taken
out. A part that cannot be had is left out, and the manifest says why.
"""
