"""How the output of a model is read: as labels, likelihoods or answers. Nothing else knows the kind of a model."""
