"""What tests of several places share: real processes and raw stubs, typed and shipped."""
