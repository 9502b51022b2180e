"""Turns on pytester for our own tests; everything else comes from the installed plugin."""

pytest_plugins = ["pytester"]
