"""A small evaluator of MSBuild project files, independent of any product."""
