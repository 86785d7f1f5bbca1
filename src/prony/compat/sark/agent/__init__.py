"""An agent that serves a SARK orchestrator as a Dumont worker does."""
