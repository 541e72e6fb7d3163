"""The order of keys in a lane, as pure data: which records of a key wait, and which may go."""
