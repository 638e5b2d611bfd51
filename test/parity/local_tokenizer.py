"""The real Python SDK's get_tokenizer() on a loaded language model: python3 test/parity/local_tokenizer.py MODEL

Needs TINKER_BASE_URL and TINKER_API_KEY of a running service; test/python/localTokenizer.test.ts starts one and runs this. Prints the tokens of
the text in JSON, and what they decode to.
"""

from __future__ import annotations

import json
import sys

import parity_venv

parity_venv.enter()

import tinker  # noqa: E402

TEXT = "hello 123\n  wörld 👋<|control1|>"

training = tinker.ServiceClient().create_lora_training_client(base_model=sys.argv[1], rank=1)
tokenizer = training.get_tokenizer()
tokens = tokenizer.encode(TEXT, add_special_tokens=False)
print(json.dumps({"text": TEXT, "tokens": tokens, "decoded": tokenizer.decode(tokens)}))
