"""SARK and Dumont: a server as their clients and workers know it, and an agent that serves a SARK."""
