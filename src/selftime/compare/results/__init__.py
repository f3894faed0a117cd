"""Compares what two programs computed in their first rounds, as `selftime run --results` keeps."""
