"""Shows whether what walks need to know of the time before a checkpoint is still what it was: a digest of what was
recorded until then, and of the clusters of these addresses."""

import json
from hashlib import blake2b

from kafkascope.pipeline.mart.names.facts import LakeFacts


def digest_before(facts: LakeFacts, checkpoint: int) -> str:
    recorded = {
        address: [(low, min(high, checkpoint)) for low, high in times if low < checkpoint]
        for address, times in facts.recorded.items()
    }
    known = {
        address: facts.clusters.get(address)
        for address, calls in facts.calls_by_address.items()
        if calls.low is not None and calls.low < checkpoint
    }
    of_these = [sorted((address, times) for address, times in recorded.items() if times), sorted(known.items())]
    return blake2b(json.dumps(of_these).encode(), digest_size=16).hexdigest()
