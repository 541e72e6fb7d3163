"""Records as ``dssctl`` looks at them: where they are, what is in them, which ones are meant.

Invariant: it only reads. No group is joined, no leader is asked, nothing is acknowledged.
"""
