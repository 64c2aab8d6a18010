"""Simulations of every guarantee, with many draws: `make test-guarantees`."""
