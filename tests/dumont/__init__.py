"""A stand-in for an unmodified Dumont worker, as a process: what it says on the wire, in which order, and its faults.

It was written from what the program was seen to do. Over HTTP a fresh connection for every call, no authentication;
over Redis a PING before every operation. It registers once and never again, pops a job for good, drops it in silence
where it cannot be looked up, says `active` before it pushes the result, and dies of SIGTERM with the job in its hands.
What it does not stand in for: how Dumont finds out what its device is, and that it deletes a model that lies on its
own disk.
"""
