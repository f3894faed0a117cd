"""The advice as text, Markdown and SARIF."""
