"""Property functions, imported only if a file calls one."""
