"""Which files are the code of a package? One module for each kind of package."""
