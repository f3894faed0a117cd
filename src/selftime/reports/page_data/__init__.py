"""Computes the data that the web page requests: tables, advice, comparisons and source lines."""
