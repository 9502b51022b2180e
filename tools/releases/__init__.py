"""Release after release of one model, from the first baseline to three that are stopped (docs/releases.md)."""
