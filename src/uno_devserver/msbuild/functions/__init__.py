"""What do property functions give? Loaded only when a file calls one."""
