"""Small programs of many kinds, each with the truth about its steps."""
