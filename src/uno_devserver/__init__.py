"""uno-devserver: a dev server that is there before you need it."""

__version__ = "0.1.0.dev0"
