"""Each table on rows that can be counted by hand."""
