"""Lists the files of a TypeScript program, as the compiler would."""

TSCONFIGS = ("tsconfig.build.json", "tsconfig.json")  # of a package, in the order of preference
