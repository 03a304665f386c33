"""Error codes: what they mean, and which APIs return them."""
