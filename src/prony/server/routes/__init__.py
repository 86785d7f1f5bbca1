"""The operations of the REST API, a module for each noun."""
