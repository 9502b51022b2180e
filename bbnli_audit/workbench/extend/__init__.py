"""The workbench: makes the harder next version of a suite, step by step, with people in the loop."""
