"""What doctor.py looks at, one file a subject. Parent side: no torch, and nothing is changed."""
