EXTRA_DIST += contrib/try contrib/check
