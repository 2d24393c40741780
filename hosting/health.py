"""Ends with 0 if the app answers, else with 1."""

import os
import sys
import urllib.error
import urllib.request

try:
    with urllib.request.urlopen(f"http://127.0.0.1:{os.environ.get('PORT', '8501')}/_stcore/health", timeout=4) as answer:
        sys.exit(answer.status != 200)
except (urllib.error.URLError, OSError):
    sys.exit(1)
