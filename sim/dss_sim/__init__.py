"""The proof of DSS: simulators, seeded bugs and models of disks. Not part of the wheel."""
