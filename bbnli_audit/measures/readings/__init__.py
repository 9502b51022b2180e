"""How a model's output is read: as labels, likelihoods or answers. No other code depends on the kind of a model."""
