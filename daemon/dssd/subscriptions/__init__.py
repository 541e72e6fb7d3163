"""A session's subscriptions: the handler in front, one agent each, its borrowers behind."""
