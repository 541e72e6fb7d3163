"""What operators are told of: things that happened to records and groups, kept in the store."""
