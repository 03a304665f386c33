"""What a connection speaks, and where its next frame begins."""
