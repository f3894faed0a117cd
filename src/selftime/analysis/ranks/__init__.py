"""What is known of several ranks together: whose clock says what, and which exchanges are one."""
