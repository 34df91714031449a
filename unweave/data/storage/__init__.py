"""Storage of images: cache, downloads, archives, memory-mapped arrays."""
