"""The workspace of a folder: its solution, global.json, config and add-ins, and whether its code may run."""
