"""One module a kind of page: parameters in, the page's facts out."""
