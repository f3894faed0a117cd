"""Steps: where they begin and end, which of them are typical, where their time goes."""
