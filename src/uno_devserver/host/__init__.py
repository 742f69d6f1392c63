"""The bundled Host: one server process per workspace, with the flags and endpoints of the .NET Host."""
