"""Python's own openai package against a gateway of tinker-rx: OPENAI_BASE_URL and OPENAI_API_KEY name it.

The gateway answers from a script, in this order: text, text again (streamed), a tool call, text. Prints `ok` when all of it was read.
"""

import parity_venv

parity_venv.enter()

import openai  # noqa: E402

client = openai.OpenAI(max_retries=0)
ask = {"model": "test/model", "messages": [{"role": "user", "content": "Hi"}]}

reply = client.chat.completions.create(**ask, max_tokens=20, logprobs=True, seed=1)
assert reply.choices[0].message.content == "Hello.", reply
assert reply.choices[0].logprobs.content[0].logprob == -0.5, reply
assert reply.usage.completion_tokens == 7, reply

parts = [
    chunk.choices[0].delta.content or ""
    for chunk in client.chat.completions.create(**ask, stream=True)
    if chunk.choices
]
assert "".join(parts) == "Streamed.", parts

tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
call = client.chat.completions.create(**ask, tools=tools).choices[0].message.tool_calls[0]
assert (call.function.name, call.function.arguments) == ("add", '{"a": 1}'), call

response = client.responses.create(model="test/model", input="Hi")
assert response.output_text == "Answered.", response

# What the gateway does not do is named in a header, and an unknown field is refused.
penalised = client.chat.completions.with_raw_response.create(**ask, presence_penalty=1)
assert "presence_penalty" in penalised.headers["x-gateway-warning"], penalised.headers
try:
    client.chat.completions.create(**ask, extra_body={"no_such_field": 1})
except openai.BadRequestError as error:
    assert error.param == "no_such_field", error
else:
    raise AssertionError("an unknown field was accepted")
print("ok")
