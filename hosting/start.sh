#!/bin/sh
# Starts the app for visitors of a server: on all addresses of the machine, because a proxy stands in front of it.
exec gptviz app --server.address="${ADDRESS:-0.0.0.0}" --server.port="${PORT:-8501}" --server.headless=true
