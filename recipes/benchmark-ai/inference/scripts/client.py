"""Asks the server whose place the environment tells, and prints how long each answer took."""

import json
import os
import time
import urllib.request

where = "http://%s:%s/predict" % (os.environ["INFERENCE_SERVER_HOST"], os.environ["INFERENCE_SERVER_PORT"])
for number in range(50):
    begin = time.perf_counter()
    request = urllib.request.Request(where, data=json.dumps({"x": number}).encode())
    with urllib.request.urlopen(request) as reply:
        answer = json.loads(reply.read())
    assert answer["answer"] == number**2
    print("response_time:%.6f" % (time.perf_counter() - begin), flush=True)
