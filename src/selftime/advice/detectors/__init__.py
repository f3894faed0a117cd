"""What several rules look at: the same evidence is found once, by one definition."""
