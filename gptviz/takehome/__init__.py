"""Downloads: a page as one file that needs no server, and as a notebook."""
