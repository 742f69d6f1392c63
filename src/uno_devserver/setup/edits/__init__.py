"""Changing one entry of somebody's configuration file, and not one byte beside it."""
