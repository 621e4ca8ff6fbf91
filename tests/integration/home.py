#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""home.py CTEST BUILD HEDDLE: a run of all tests leaves the home of the user alone.

Every test that CTest knows gets a HOME and the folders of XDG below BUILD, each test
another one; and what the tool keeps by itself goes there.
"""
import json
import os
import pathlib
import subprocess
import sys

ctest, build, heddle = sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
FOLDERS = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
bad = 0


def wrong(text):
    global bad
    bad += 1
    print("FAILED:", text)


def is_ours(path):
    return path is not None and build in pathlib.Path(path).resolve().parents


def environment(test):
    """The variables that a test gets, the last one of a name as CTest takes it."""
    for p in test.get("properties", []):
        if p["name"] == "ENVIRONMENT":
            return dict(v.split("=", 1) for v in p["value"])
    return {}


text = subprocess.run([ctest, "--test-dir", str(build), "--show-only=json-v1"], check=True,
                      capture_output=True, text=True).stdout
tests = json.loads(text)["tests"]
homes = set()
for t in tests:
    env = environment(t)
    for name in FOLDERS:
        if not is_ours(env.get(name)):
            wrong(f"{t['name']}: {name} is {env.get(name)}")
    homes.add(env.get("HOME"))
if len(tests) < 100 or len(homes) != len(tests):
    wrong(f"{len(tests)} tests have {len(homes)} homes")

# This is one of them: what a run keeps is below HOME, and nowhere else.
for name in FOLDERS:
    if not is_ours(os.environ.get(name)):
        wrong(f"{name} of this test is {os.environ.get(name)}")
if bad == 0:
    home = pathlib.Path(os.environ["HOME"])
    clean = {k: v for k, v in os.environ.items() if not k.startswith("HEDDLE_")}
    subprocess.run([heddle, "demo", "--n", "128", "--no-progress", "--log",
                    str(home / "run.log")],
                   env={**clean, "HEDDLE_MODELS": "on"}, check=True, capture_output=True)
    path = subprocess.run([heddle, "model", "path"], env=clean, check=True,
                          capture_output=True, text=True).stdout.strip()
    if not is_ours(path) or home not in pathlib.Path(path).parents:
        wrong(f"models are kept in {path}")
    if not list(pathlib.Path(path).glob("*.model")):
        wrong(f"no model in {path}")
sys.exit(bad != 0)
