"""Sans-I/O machines of the group protocol: inputs in, effects out, no clock of their own."""
