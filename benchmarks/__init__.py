"""Measured against other libraries: `make bench`."""
