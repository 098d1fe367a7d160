"""What may be said of a table's numbers: intervals, paired differences, benefit by cost."""
