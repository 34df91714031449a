"""Where images are kept and how they are read: cache, download, memory maps, prefetching."""
