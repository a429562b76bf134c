"""What a run directory's files say. Pure: standard library only, no device, no tracking store."""
