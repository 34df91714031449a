"""`python -m unweave` is `unweave`."""

from unweave.cli.app import main

main()
