"""Follows the ledgers of a job's processes while these run."""
