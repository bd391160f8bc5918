"""What `report` and `idle` print, and the times that they take."""
