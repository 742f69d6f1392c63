"""Chaos runs: faults are injected while clients call, and invariants must hold. See run.py."""
