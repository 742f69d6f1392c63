"""Who is running? The registry of dev servers that all launchers share."""
