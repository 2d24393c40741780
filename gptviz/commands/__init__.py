"""The commands of the command line, a file each: what it is called, its options, and what it does."""
