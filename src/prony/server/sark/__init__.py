"""SARK's REST API and its Redis lists, as a second face of the same server."""
