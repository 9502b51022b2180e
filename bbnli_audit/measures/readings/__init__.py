"""How a model's output is read: as labels, likelihoods or answers. Measures depend on it, not on the model's kind."""
