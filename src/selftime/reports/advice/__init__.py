"""Writes advice as text, Markdown and SARIF."""
