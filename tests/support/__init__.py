"""What tests stand on: a machine in a folder, a stand-in for dotnet, workspaces, packages and recorded inputs."""
