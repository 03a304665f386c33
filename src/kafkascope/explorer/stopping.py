"""Tells threads that the server is ending: whoever ends it should not wait until a recording is read."""

from threading import Event

STOPPING = Event()
