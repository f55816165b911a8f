"""The papers' claims, measured: `make experiments`."""
