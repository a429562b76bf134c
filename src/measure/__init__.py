"""Measuring: everything that imports torch. Never imports mlflow or hydra."""
