"""A model server of a few lines: it says that it is ready when its model is there, and squares what it is asked."""

import http.server
import json
import sys
import time


class Handler(http.server.BaseHTTPRequestHandler):
    served = 0

    def do_GET(self):
        self.answer(b"pong")

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        Handler.served += 1
        sys.stdout.write("Requests2XX.Count:%d\n" % Handler.served)
        sys.stdout.flush()
        self.answer(json.dumps({"answer": asked["x"] ** 2, "bias": MODEL["bias"]}).encode())

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


with open(sys.argv[2]) as model:
    MODEL = json.load(model)
time.sleep(0.2)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
