"""The static site: pages made from the tables, readable without a server and without a network.

`build.py` writes a whole site; one module per kind of page says what stands on it, `templates/`
how it looks, `static/` holds the style sheet and the only script. Everything that comes from a
dataset is untrusted text: templates escape it, addresses are made from digests, and the script
sets text, never markup. Reads the database and the publications; writes into the site's folder.
"""
