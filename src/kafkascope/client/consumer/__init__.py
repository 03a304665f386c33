"""Consumes records as a member of a share group: `ShareConsumer` for asyncio, and a plain one for scripts."""
