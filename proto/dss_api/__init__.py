"""The wire of DSS: protobuf messages, gRPC services and their generated stubs."""
