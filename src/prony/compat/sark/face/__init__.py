"""A fleet as SARK's clients and Dumont workers know it: campaigns are experiments, workers are agents.

Nothing is kept or handed out here: jobs wait in the fleet's queue and are lent by its leases; lists in a Redis tell
workers of them.
"""
