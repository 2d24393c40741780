"""What each script in `pages/` draws: `pages/x.py` draws what is in `ui/pages/x`."""
