"""The command line: a leaf that parses options, shows events and turns errors into one line."""
