"""Finds the files that are the code of a package; one module for each kind of package."""
