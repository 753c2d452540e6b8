"""How often a model hallucinates: rates, samples, gates and certificates."""
