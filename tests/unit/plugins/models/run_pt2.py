"""`python run_pt2.py MODEL.pt2 IN.npz OUT.npz`: run an exported program under the interpreter that has torch."""

import sys

import numpy as np
import torch


def main(model: str, inputs: str, outputs: str) -> None:
    program = torch.export.load(model)
    names = [item.arg.name for item in program.graph_signature.input_specs if item.kind.name == "USER_INPUT"]
    arrays = np.load(inputs)
    with torch.inference_mode():
        found = program.module()(*(torch.from_numpy(arrays[name]) for name in names))
    np.savez(outputs, **{name: value.numpy() for name, value in found.items()})


if __name__ == "__main__":
    main(*sys.argv[1:])
