"""Where rows are. Each module is one kind of source: arrays, matrices, batches, engines, sketches."""
