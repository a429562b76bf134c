"""Settings of hypothesis for this room: a busy machine must not fail a test by its clock."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no_deadline", deadline=None)
settings.load_profile("no_deadline")
