"""Reports: tables and findings as bytes, for people and for other programs."""
