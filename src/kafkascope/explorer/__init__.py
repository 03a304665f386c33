"""The explorer: the catalog, the decoder and a lake as pages in a browser, from a server or as plain files."""
