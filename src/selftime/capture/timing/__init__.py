"""Times the steps of a program that nothing records: a clock at each boundary between steps."""
