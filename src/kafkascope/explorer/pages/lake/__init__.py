"""The pages of the lake browser: overview, findings, exchanges and their bytes."""
