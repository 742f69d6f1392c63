"""Everything is broken on purpose while clients call; what is promised must hold: see run.py."""
