"""Many audits on one store while things go wrong: `make soak` (docs/security.md)."""
