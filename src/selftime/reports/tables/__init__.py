"""Tables of views as a terminal, a file or a program wants them."""
