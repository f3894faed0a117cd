"""The critical path of one rank: what made an instant so late, back in time."""
