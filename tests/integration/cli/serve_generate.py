#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A server with a decoder: tokens, streams, refusals, many clients, clients that go away.

serve_generate.py HEDDLE ROOT. The decoder is examples/networks/echo.onnx: behind the last place
where the present token has stood comes the same token again, and 64 tokens are all it has
places for.
"""
import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time

from serve import Failed, ask, check

MODEL = "/v2/models/echo/"


def continued(prompt, n):
    """What the network does, for prompts that repeat their last token."""
    tokens = list(prompt)
    for _ in range(n):
        last = max(i for i in range(len(tokens) - 1) if tokens[i] == tokens[-1])
        tokens.append(tokens[last + 1])
    return tokens[len(prompt):]


def generate(p, body, verb="generate"):
    status, _, data = ask(p, "POST", MODEL + verb,
                          body if isinstance(body, (str, bytes)) else json.dumps(body))
    return status, json.loads(data)


def stream(p, body):
    """The events of a stream."""
    c = http.client.HTTPConnection("127.0.0.1", p, timeout=60)
    c.request("POST", MODEL + "generate_stream", json.dumps(body))
    r = c.getresponse()
    data = r.read().decode()
    c.close()
    if r.status != 200:
        return r.status, json.loads(data)
    check(r.getheader("Content-Type") == "text/event-stream", "the type of a stream")
    events = data.split("\n\n")
    check(events.pop() == "" and all(e.startswith("data: ") for e in events), f"events: {data}")
    return 200, [json.loads(e[6:]) for e in events]


def replies(p):
    prompt = [7, 3, 9, 5, 7]
    want = continued(prompt, 8)
    status, r = generate(p, {"input_ids": prompt, "max_tokens": 8})
    check(status == 200 and r == {"model_name": "echo", "model_version": "1", "output_ids": want,
                                  "finish_reason": "length"}, f"tokens: {r}")
    status, r = generate(p, {"input_ids": prompt, "parameters": {"max_tokens": 8, "top_k": 2,
                                                                 "seed": 3, "stop_token": 5}})
    check(status == 200 and r["output_ids"] == want[:3] and r["finish_reason"] == "stop",
          f"a token that ends it: {r}")
    check(len(generate(p, {"input_ids": prompt})[1]["output_ids"]) == 16, "16 by default")
    status, events = stream(p, {"input_ids": prompt, "max_tokens": 8})
    check(status == 200 and [e["token"] for e in events[:-1]] == want and
          [e["index"] for e in events[:-1]] == list(range(8)) and
          events[-1]["finish_reason"] == "length" and events[-1]["output_tokens"] == 8,
          f"a stream: {events}")
    body = {"id": "q", "inputs": [{"name": "input_ids", "datatype": "INT64", "shape": [1, 5],
                                   "data": prompt}], "parameters": {"max_tokens": 8}}
    status, r = generate(p, body, "infer")
    check(status == 200 and r["id"] == "q" and r["outputs"] == [
        {"name": "output_ids", "datatype": "INT64", "shape": [1, 8], "data": want}],
        f"an inference request: {r}")


def refusals(p):
    for body, word in (("{", "malformed"), ("[]", "not an object"), ("{}", "no 'input_ids'"),
                       ({"input_ids": 5}, "not one array"), ({"input_ids": []}, "no tokens"),
                       ({"input_ids": [1, "a"]}, "element 1"), ({"input_ids": [99]}, "token 99"),
                       ({"input_ids": [-1]}, "token -1"),
                       ({"text_input": "hello"}, "tokenizer"),
                       ({"input_ids": [1], "max_tokens": -1}, "'max_tokens'"),
                       ({"input_ids": [1], "max_tokens": 1 << 30}, "'max_tokens'"),
                       ({"input_ids": [1], "temperature": "hot"}, "'temperature'"),
                       ({"input_ids": [1], "parameters": {"top_p": 1.5}}, "'top_p'"),
                       ({"input_ids": [1], "max_tokens": 1 << 20}, "1048577 tokens"),
                       ({"input_ids": [1], "max_tokens": 100000}, "there may be 1.0"),
                       ('{"input_ids": [1]} {}', "")):
        status, r = generate(p, body)
        check(status == 400 and word in r["error"], f"{body}: {status} {r}")
        status, r = generate(p, body, "generate_stream")
        check(status == 400 and word in r["error"], f"a stream of {body}: {status} {r}")
    check(ask(p, "GET", MODEL + "generate")[0] == 405, "GET")
    status, _, data = ask(p, "POST", "/v2/models/flowers/generate", '{"input_ids": [1]}')
    check(status == 400 and b"no decoder" in data, f"no decoder: {data}")
    # The network has 64 places: the request fails, and what has come is in the stream.
    status, events = stream(p, {"input_ids": [1, 2, 1], "max_tokens": 80})
    check(status == 200 and len(events) == 63 and "Gather" in events[-1]["error"],
          f"beyond the places: {events[-1]}")


def many(p, clients, each):
    bad = []

    def client(k):
        rng = random.Random(k)
        for _ in range(each):
            period = rng.sample(range(16), rng.randint(1, 9))
            prompt = (period * 9)[:len(period) + rng.randint(1, 8)]
            n = rng.randint(1, 40)
            if rng.random() < 0.5:
                status, r = generate(p, {"input_ids": prompt, "max_tokens": n})
                got = r.get("output_ids")
            else:
                status, r = stream(p, {"input_ids": prompt, "max_tokens": n})
                got = [e["token"] for e in r[:-1]] if status == 200 else None
            if status != 200 or got != continued(prompt, n):
                bad.append((prompt, n, status, r))

    threads = [threading.Thread(target=client, args=(k,)) for k in range(clients)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check(not bad, f"many clients: {bad[:1]}")


def numbers(p):
    text = ask(p, "GET", "/metrics")[2].decode()
    return {line.split("{")[0]: float(line.split()[-1]) for line in text.splitlines()
            if line.startswith("heddle_generate_") and 'model="echo"' in line}


def gone(p):
    """Clients that close their connection leave the batch, and its queue."""
    before = numbers(p)
    body = json.dumps({"input_ids": [1, 1], "max_tokens": 50})
    for verb in ("generate", "generate_stream") * 10:
        s = socket.create_connection(("127.0.0.1", p))
        s.sendall(f"POST {MODEL}{verb} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
                  .encode() + body.encode())
        s.close()
    status, r = generate(p, {"input_ids": [4, 8, 4], "max_tokens": 4})
    check(status == 200 and r["output_ids"] == [8, 4, 8, 4], f"after clients that went away: {r}")
    for _ in range(500):
        now = numbers(p)
        if now["heddle_generate_running"] + now["heddle_generate_waiting"] == 0:
            break
        time.sleep(0.01)
    ended = sum(now["heddle_generate_" + k] - before["heddle_generate_" + k]
                for k in ("success", "failure", "cancelled"))
    left = now["heddle_generate_cancelled"] - before["heddle_generate_cancelled"]
    check(now["heddle_generate_running"] == 0 and ended == 21 and left >= 5,
          f"who went away: {before} {now}")


def main():
    heddle, root = sys.argv[1:3]
    folder = root + "/examples/networks/"
    server = subprocess.Popen(
        [heddle, "serve", folder + "echo.onnx", folder + "flowers.onnx", "--port", "0",
         "--max-sequences", "4", "--max-cache", "1", "--json"], stdout=subprocess.PIPE, text=True)
    try:
        p = json.loads(server.stdout.readline())["port"]
        replies(p)
        refusals(p)
        many(p, 12, 12)
        gone(p)
        check(ask(p, "POST", "/v2/repository/models/echo/load")[0] == 200, "load again")
        replies(p)
        last = threading.Thread(target=stream, args=(p, {"input_ids": [1, 1], "max_tokens": 50}))
        last.start()
        time.sleep(0.05)
        server.send_signal(signal.SIGTERM)
        last.join()
        check(server.wait(timeout=60) == 0, "SIGTERM")
    except Failed as e:
        print(f"FAILED: {e}")
        return 1
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
