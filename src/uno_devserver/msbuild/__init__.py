"""What would MSBuild say? A small evaluator of project files that knows no product."""
