"""The explorer as a web server."""
