"""Calibration of scores on validation rows: `curves` of many labels, and `corrections` where rows reject a curve."""
