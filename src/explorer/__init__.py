"""neuron-explorer, run on a finished profile: by run.py when asked, or later by explore.py."""
