"""What does a workspace run? Read from NuGet packages and restore files on disk, in milliseconds."""
