"""The face of a device: leases in, results out, by outgoing HTTP alone and for as long as its process lives."""
