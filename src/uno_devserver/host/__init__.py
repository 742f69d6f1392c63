"""The replaceable process: one server per workspace, with the flags and endpoints of the .NET Host."""
