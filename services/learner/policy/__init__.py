"""Where policies come from and how they leave: model folders in the Hugging Face layout."""
