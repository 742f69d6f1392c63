"""Is the code newer than what runs? The content of its files decides; what runs is built and started again."""
