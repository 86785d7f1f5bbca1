"""Programs that results and logs can be sent to."""
