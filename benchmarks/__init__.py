"""What was measured, and how to measure it again (`make bench`)."""
