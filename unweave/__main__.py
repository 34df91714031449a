"""`python -m unweave` is `unweave`."""

from unweave.cli import main

main()
