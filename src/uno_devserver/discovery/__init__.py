"""Finds what a workspace uses by reading NuGet packages and restore files on disk, in milliseconds."""
