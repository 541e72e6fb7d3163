"""The daemon of DSS: a log, a store, leaders that lend streams, sessions that borrow them."""
