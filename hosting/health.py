"""Ends with 0 if the app answers, else with 1."""

import os
import sys
import urllib.error
import urllib.request

port, below = (
    os.environ.get("PORT", "8501"),
    os.environ.get("STREAMLIT_SERVER_BASE_URL_PATH", "").strip("/"),
)
try:
    with urllib.request.urlopen(
        f"http://127.0.0.1:{port}{below and f'/{below}'}/_stcore/health", timeout=4
    ) as answer:
        sys.exit(answer.status != 200)
except (urllib.error.URLError, OSError):
    sys.exit(1)
