"""Hot reload in a proxy: which code is watched, and how the server is replaced by one with new code."""
