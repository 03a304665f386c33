"""The marts of share groups: deliveries, and the minutes of groups."""
