"""Re-measure chosen runs on a GPU under our own protocol; nothing here runs by itself."""
