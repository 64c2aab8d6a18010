"""Tuning: the functions that people call, and shrinkage, which smooths labels before they are searched."""
