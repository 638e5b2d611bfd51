from importlib import import_module

MODULES = ("session", "models", "losses", "tensors", "chunking", "optimizer", "weights", "sampling", "futures", "custom_loss", "rest")


def load() -> None:
    """Registers every scenario."""
    for name in MODULES:
        import_module(f"{__name__}.{name}")
