"""The targets, by what they read; `table` has them all."""
