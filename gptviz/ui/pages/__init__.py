"""What pages show: for each page a folder of its name, with a file per view, and with `about.md`,
which explains them.
"""
