"""One function for each thing that can happen to a run; one transaction each."""
