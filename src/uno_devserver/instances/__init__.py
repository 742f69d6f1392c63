"""Running Hosts: the registry that all launchers share, and finding, launching, probing and stopping Hosts."""
