"""Tokenizers beside those of the tokenizers package: compare.py LIBRARY. Trains small tokenizers of GPT-2's and Llama 3's kind, and compares ids and
decoded text on 2,000 random strings each. Exit code 77 where the package is missing."""
import ctypes
import random
import sys
import tempfile
import unicodedata

try:
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
except ImportError:
    print("the Python package tokenizers is missing: skipped")
    sys.exit(77)

STRINGS = 2000
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
WORDS = ("the of and to in that is was he for it with as his on be at by had not are but from or have an they which one you were her all she "
         "there would their we him been has when who will more no if out so said what up its about into than them can only other new some "
         "don't I'll we're they've I'm he'd it's naïve café Ελλάδα Москва 東京 مرحبا नमस्ते 2023 1234567 3.14 x=y+1; foo(bar) ... --- \n \r\n \t").split(" ")

lib = ctypes.CDLL(sys.argv[1])
lib.clt_error_detail.restype = ctypes.c_char_p


def check(status):
    if status < 0:
        sys.exit(f"FAILED: {lib.clt_error_detail().decode()}")


class Ours:
    def __init__(self, path):
        self.handle = ctypes.c_void_p()
        check(lib.clt_tokenizer_load(ctypes.byref(self.handle), path.encode()))

    def encode(self, text):
        data, count = text.encode(), ctypes.c_size_t()
        check(lib.clt_tokenizer_encode(self.handle, data, ctypes.c_size_t(len(data)), None, ctypes.c_size_t(0), ctypes.byref(count)))
        ids = (ctypes.c_int32 * count.value)()
        check(lib.clt_tokenizer_encode(self.handle, data, ctypes.c_size_t(len(data)), ids, count, ctypes.byref(count)))
        return list(ids)

    def decode(self, ids):
        array, count = (ctypes.c_int32 * len(ids))(*ids), ctypes.c_size_t()
        check(lib.clt_tokenizer_decode(self.handle, array, ctypes.c_size_t(len(ids)), None, ctypes.c_size_t(0), ctypes.byref(count)))
        text = ctypes.create_string_buffer(count.value + 1)
        check(lib.clt_tokenizer_decode(self.handle, array, ctypes.c_size_t(len(ids)), text, count, ctypes.byref(count)))
        return text.raw[:count.value].decode()


def random_text(rng):
    kinds = [lambda: rng.choice(WORDS), lambda: " " * rng.randrange(1, 6), lambda: chr(rng.randrange(32, 127)), lambda: "\n" * rng.randrange(1, 3),
             lambda: chr(rng.randrange(0xa0, 0x2fff)), lambda: chr(rng.randrange(0x4e00, 0x9fff)), lambda: chr(rng.randrange(0x1f300, 0x1f6ff)),
             lambda: rng.choice(["\x85", "\u00a0", "\u2003", "\u200b", "\u3000", "\ufeff", "ſ", "'S", "'LL", "<|endoftext|>", "\x00", "\x1f"])]
    text = "".join(rng.choice(kinds)() + rng.choice(["", " ", ""]) for _ in range(rng.randrange(0, 40)))
    # Python's Unicode may know characters that the libraries' do not, and the other way round.
    return "".join(c for c in text if unicodedata.category(c) != "Cn" and ord(c) not in range(0x1c80, 0x1cc0))


def trained(pre_tokenizer, folder, name, **options):
    tokenizer = Tokenizer(models.BPE(**options))
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    rng = random.Random(1)
    tokenizer.train_from_iterator([" ".join(rng.choice(WORDS) for _ in range(50)) for _ in range(400)], trainer)
    tokenizer.save(f"{folder}/{name}.json")
    return tokenizer


def compare(name, theirs, ours):
    rng = random.Random(2)
    for i in range(STRINGS):
        text = random_text(rng)
        wanted, got = theirs.encode(text, add_special_tokens=False).ids, ours.encode(text)
        if wanted != got:
            sys.exit(f"FAILED: {name}, string {i} {text!r}: expected {wanted}, got {got}")
        if ours.decode(got) != text:
            sys.exit(f"FAILED: {name}, string {i} {text!r}: decoded to {ours.decode(got)!r}")
    print(f"{name}: {STRINGS} strings have the same ids, and decode to themselves")


with tempfile.TemporaryDirectory() as folder:
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    split = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    for name, pre, options in [("gpt2", byte_level, {}), ("llama3", split, {"ignore_merges": True})]:
        compare(name, trained(pre, folder, name, **options), Ours(f"{folder}/{name}.json"))
    for name, make in [("bytes", lambda h: lib.clt_tokenizer_bytes(ctypes.byref(h))),
                       ("chars", lambda h: lib.clt_tokenizer_chars(ctypes.byref(h), "To be, or\nnot é 漢".encode(), ctypes.c_size_t(22)))]:
        handle, path = ctypes.c_void_p(), f"{folder}/{name}.json"
        check(make(handle))
        check(lib.clt_tokenizer_save(handle, path.encode()))
        theirs, ours, text = Tokenizer.from_file(path), Ours(path), "no root é, 漢"
        if theirs.encode(text).ids != ours.encode(text) or theirs.decode(ours.encode(text)) != text:
            sys.exit(f"FAILED: the saved {name} tokenizer: expected {theirs.encode(text).ids}, got {ours.encode(text)}")
        print(f"{name}: the saved file gives the same ids")
