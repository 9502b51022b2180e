"""The workbench: makes the harder next version of a suite, step by step over files, with people in the loop."""
