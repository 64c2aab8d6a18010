"""`PlugInClassifier`, and how it splits rows and reads scores of many labels."""
