"""``python -m primalsvm``."""

from primalsvm.cli import main

main()
