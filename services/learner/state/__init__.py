"""What the learner keeps in the object store: checkpoints, the ledger of what was consumed, control,
ownership."""
