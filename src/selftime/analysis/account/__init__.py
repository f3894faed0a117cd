"""The account of the step: what each nanosecond of it was spent on."""
