"""``python -m primalsvm``."""

from primalsvm.cli import app

app()
