"""The explorer: pages about the catalog, the decoder and a lake, from a server or as plain files."""
