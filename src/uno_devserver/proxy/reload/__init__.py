"""Hot reload in a proxy: who is asked for new code, and how the server is replaced."""
