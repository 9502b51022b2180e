"""Makes group-swapped copies of NLI training data: `bbnli-audit augment` (docs/augment.md)."""
