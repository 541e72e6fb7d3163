"""``dssctl doctor``: from the client to the groups, what is wrong and what helps.

Facts are gathered first (`facts`), then judged by pure rules (`rules`). Invariant: it changes
nothing, and a question that fails is itself a finding, so that one trouble hides no other.
"""
