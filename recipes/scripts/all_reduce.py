"""How long the ranks of a launch take to add up one large tensor; each tells its own times."""

import time

import torch
import torch.distributed as dist

import prony

MIB = 16
dist.init_process_group("gloo")
numbers = torch.ones(MIB * 2**20 // 4)
for step in range(5):
    dist.barrier()
    begin = time.perf_counter()
    dist.all_reduce(numbers)
    seconds = time.perf_counter() - begin
    # What each rank sends and receives in a ring, by which fabrics are compared.
    bus_mib = 2 * MIB * (dist.get_world_size() - 1) / dist.get_world_size()
    prony.emit({"all_reduce_ms": seconds * 1e3, "bus_mib_per_s": bus_mib / seconds}, step=step)
    numbers.fill_(1)
dist.destroy_process_group()
