"""``python -m macr_local`` is ``macr-local``."""

from macr_local.cli.main import main

main()
