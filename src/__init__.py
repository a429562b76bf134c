"""Profiles of PyTorch workloads on AWS Trainium, tracked in MLflow. Start at run.py."""
