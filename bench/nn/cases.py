#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the node tests of PyPI's `onnx` as files, in the form of its older releases.

    cases.py DIR

Each case becomes a folder with model.onnx and test_data_set_0, test_data_set_1, ... of
inputs and outputs.
"""
import os
import sys
import warnings

from onnx import TensorProto, numpy_helper
from onnx.backend.test.case import node

# What a value of a graph is, and how it is written; a tensor otherwise.
WRITERS = {"map_type": numpy_helper.from_dict, "sequence_type": numpy_helper.from_list,
           "optional_type": numpy_helper.from_optional}


def message(value, info):
    if isinstance(value, TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    return WRITERS.get(kind, numpy_helper.from_array)(value, info.name)


def write(path, proto):
    with open(path, "wb") as f:
        f.write(proto.SerializeToString())


def write_case(folder, case):
    os.makedirs(folder)
    write(os.path.join(folder, "model.onnx"), case.model)
    for i, data in enumerate(case.data_sets):
        sub = os.path.join(folder, f"test_data_set_{i}")
        os.makedirs(sub)
        for what, values, infos in zip(("input", "output"), data,
                                       (case.model.graph.input, case.model.graph.output)):
            for k, (value, info) in enumerate(zip(values, infos)):
                write(os.path.join(sub, f"{what}_{k}.pb"), message(value, info))


def main():
    if len(sys.argv) != 2:
        print("cases.py: which folder?", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    cases = [c for c in node.collect_testcases() if c.model is not None and c.data_sets]
    for case in cases:
        write_case(os.path.join(sys.argv[1], case.name), case)
    print(f"{sys.argv[1]}: {len(cases)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
