"""Starting the child and keeping what it measured: the room of MLflow, without torch."""
