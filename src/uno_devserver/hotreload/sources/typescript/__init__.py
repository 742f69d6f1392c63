"""Lists the files of a TypeScript program, as the compiler would."""
