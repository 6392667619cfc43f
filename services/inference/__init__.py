"""The inference service: generates turns with the current policy and loads new policy versions in flight."""
