"""What tests of programs that use this client can stand on."""
