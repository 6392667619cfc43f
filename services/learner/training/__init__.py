"""The optimizer step: from token ids and rewards to new weights. Nothing here knows of topics or stores."""
