"""The app in the browser.

`records` say what pages there are, `shell` is what every page stands in, `widgets` are controls,
`views` are what several pages show, and `pages` what each shows.
"""
