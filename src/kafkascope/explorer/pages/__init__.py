"""The pages of the explorer, one module per kind: each turns parameters into facts."""
