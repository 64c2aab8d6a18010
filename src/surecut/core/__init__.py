"""The exact answer: entries of a tally at a resolution, the rules that judge them, and the search that refines them."""
