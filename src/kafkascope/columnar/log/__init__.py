"""Records of log segments: their framing, and their JSON, in kernels."""
