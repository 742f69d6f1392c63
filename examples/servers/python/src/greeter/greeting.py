"""Edit this sentence, save, and let the agent call the tool again."""


def greeting(name: str) -> str:
    return f"Hello, {name}!"
