"""``dssctl doctor``: what is wrong, from the client to the groups, and what helps.

Facts are gathered first (`facts`), then judged by pure rules (`rules`). Invariant: it changes
nothing, and a question that fails is itself a finding, so one failure does not hide others.
"""
