"""Lists the public names of the installed Python SDK as JSON: python3 test/parity/list_sdk.py

One entry a row of docs/parity.md: {section, name, kind, names, twin?}. `names` are the parameters of a
method, the fields of a type, the values of a literal, the members of a union. `twin` says that there also
is a `<name>_async` with the same parameters. Flags have their `default`. Names that begin with an underscore are not public.
"""

from __future__ import annotations

import sys

sys.dont_write_bytecode = True

import parity_venv  # noqa: E402

parity_venv.enter()

import ast  # noqa: E402
import dataclasses  # noqa: E402
import enum  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import textwrap  # noqa: E402
import types as python_types  # noqa: E402
import typing  # noqa: E402
from pathlib import Path  # noqa: E402

import pydantic  # noqa: E402
import tinker  # noqa: E402
from tinker import auth, types  # noqa: E402
from tinker.lib import retry_handler  # noqa: E402
from tinker.lib.public_interfaces import api_future  # noqa: E402
from tinker.types import optimizer  # noqa: E402

CLIENTS = ("ServiceClient", "TrainingClient", "SamplingClient", "RestClient", "AdminClient", "APIFuture")
FLAGS = {"ClientConfigResponse": "Flags of client/config", "ClientDynamicConfigResponse": "Flags of client/dynamic_config"}
# Not exported at the top, but part of a public signature.
REACHABLE_TYPES = {
    "RetryConfig": retry_handler.RetryConfig,
    "AwaitableConcurrentFuture": api_future.AwaitableConcurrentFuture,
    "OptimizerConfigBase": optimizer.OptimizerConfigBase,
    "OptimParamsBase": optimizer.OptimParamsBase,
}
Entry = dict[str, object]


def is_public(name: str) -> bool:
    return not name.startswith("_")


def parameters(function: object) -> list[str]:
    names = inspect.signature(inspect.unwrap(function)).parameters
    return [name for name in names if name not in ("self", "cls") and is_public(name)]


def own_members(cls: type) -> dict[str, object]:
    """What the class and the SDK's own bases define; not what pydantic, Exception or abc bring along."""
    members: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        if base.__module__.split(".")[0] == "tinker" and base.__name__ not in ("BaseModel", "StrictBase"):
            members.update(vars(base))
    decorators = getattr(cls, "__pydantic_decorators__", None)
    hooks = set() if decorators is None else {*decorators.field_validators, *decorators.field_serializers}
    return {name: member for name, member in members.items() if is_public(name) and name not in hooks}


def instance_attributes(cls: type) -> list[str]:
    """What the constructor sets on self."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(cls.__init__))))
    targets = [
        target
        for node in ast.walk(tree)
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    names = [node.attr for node in targets if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"]
    return [name for name in dict.fromkeys(names) if is_public(name)]


def methods(section: str, cls: type) -> list[Entry]:
    members = own_members(cls)
    entries: list[Entry] = []
    for name, member in members.items():
        function = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
        if not inspect.isfunction(inspect.unwrap(function)) or name.removesuffix("_async") != name and name.removesuffix("_async") in members:
            continue
        entry: Entry = {"section": section, "name": f"{name}()", "kind": "method", "names": parameters(function)}
        twin = members.get(f"{name}_async")
        if twin is not None:
            entry["twin"] = True
            entry["names"] = list(dict.fromkeys([*parameters(function), *parameters(twin)]))
        entries.append(entry)
    return entries


def attributes(cls: type) -> list[str]:
    if issubclass(cls, pydantic.BaseModel):
        names = list(cls.model_fields)
    elif dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls)]
    else:
        names = [name for base in cls.__mro__ if base.__module__.startswith("tinker") for name in vars(base).get("__annotations__", {})]
    members = own_members(cls)
    names += [name for name, member in members.items() if isinstance(member, property) or type(member).__name__ == "cached_property"]
    return [name for name in dict.fromkeys(names) if is_public(name)]


def literal_names(value: object) -> list[str]:
    """Values of a literal, or names of the members of a union."""
    origin = typing.get_origin(value)
    if origin is typing.Annotated:
        return literal_names(typing.get_args(value)[0])
    if origin is typing.Literal:
        return [str(item) for item in typing.get_args(value)]
    if origin in (typing.Union, python_types.UnionType):
        return [name for item in typing.get_args(value) for name in literal_names(item)]
    return [value.__name__] if inspect.isclass(value) and origin is None and value not in (str, int) else []


def client_entries() -> list[Entry]:
    entries: list[Entry] = []
    for name in CLIENTS:
        cls = getattr(tinker, name)
        # The others are handed out, nobody constructs them.
        if name in ("ServiceClient", "RestClient", "AdminClient"):
            names = [parameter for parameter in parameters(cls.__init__) if parameter != "kwargs"]
            entries.append({"section": name, "name": f"{name}()", "kind": "constructor", "names": names})
        entries += methods(name, cls)
        properties = [member for member, value in own_members(cls).items() if isinstance(value, property)]
        for member in dict.fromkeys([*properties, *(instance_attributes(cls) if "__init__" in vars(cls) else [])]):
            entries.append({"section": name, "name": member, "kind": "property", "names": []})
    return entries


def type_entries() -> list[Entry]:
    values = {name: value for name, value in vars(types).items() if is_public(name) and not inspect.ismodule(value)}
    values = {**values, "LossHandle": tinker.LossHandle, "PerDatumLossFn": tinker.PerDatumLossFn, **REACHABLE_TYPES}
    entries: list[Entry] = []
    for name, value in sorted(values.items()):
        if name in FLAGS or name == "annotations":
            continue
        if not inspect.isclass(value) or value in (str, int) or typing.get_origin(value) is not None:
            entries.append({"section": "Types", "name": name, "kind": "alias", "names": literal_names(value)})
            continue
        names = [str(member.value) for member in value] if issubclass(value, enum.Enum) else attributes(value)
        entries.append({"section": "Types", "name": name, "kind": "type", "names": names})
        for method in methods("Types", value):
            entries.append({**method, "name": f"{name}.{method['name']}"})
    return entries


def error_entries() -> list[Entry]:
    errors = [name for name in tinker.__all__ if inspect.isclass(getattr(tinker, name)) and issubclass(getattr(tinker, name), Exception)]
    entries: list[Entry] = []
    for name in errors:
        cls = getattr(tinker, name)
        names = attributes(cls) or (instance_attributes(cls) if "__init__" in vars(cls) else [])
        entries.append({"section": "Errors", "name": name, "kind": "error", "names": names})
    return entries


def flag_entries() -> list[Entry]:
    return [
        {"section": section, "name": name, "kind": "flag", "names": [], "default": field.default}
        for model, section in FLAGS.items()
        for name, field in getattr(types, model).model_fields.items()
    ]


def environment_entries() -> list[Entry]:
    """Every name that the SDK's source looks up in os.environ."""
    found: set[str] = set()
    for path in Path(tinker.__file__).parent.rglob("*.py"):
        if path.name.endswith("_test.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv", "environ.get"):
                found.add(ast.literal_eval(node.args[0]))
            elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
                found.add(ast.literal_eval(node.slice))
    return [{"section": "Environment", "name": name, "kind": "environment", "names": []} for name in sorted(found)]


def other_entries(known: set[str]) -> list[Entry]:
    entries: list[Entry] = [
        {"section": "tinker.auth", "name": f"{name}()", "kind": "method", "names": parameters(getattr(auth, name))}
        for name in auth.__all__
    ]
    known |= {*CLIENTS, "auth", "types"}
    for name in tinker.__all__:
        if name not in known:
            entries.append({"section": "Other names", "name": name, "kind": "export", "names": []})
    return entries


def main() -> None:
    entries = [*client_entries(), *type_entries(), *error_entries(), *flag_entries(), *environment_entries()]
    entries += other_entries({str(entry["name"]) for entry in entries})
    json.dump({"sdk": f"tinker {tinker.__version__}", "entries": entries}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
