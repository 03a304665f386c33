"""The kernel that decodes many frames of one message."""
