"""Replies of a chat model: correct ones, and wrong ones that real models send."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.standins.wire import Call, Wire

Text = str | Callable[[Call], str]
Usage = Mapping[str, Any] | None | Literal["counted"]


@dataclass(frozen=True)
class Reply:
    """Respond with `text`, or with what a function returns for the call.

    `usage` is counted in words, or is the usage object to send, or is left out (None). `model` is the name
    that the reply reports; without one, that of the request.
    """

    text: Text = "ok"
    finish_reason: str = "stop"
    usage: Usage = "counted"
    cached_tokens: int = 0
    model: str | None = None

    def play(self, call: Call, wire: Wire) -> None:
        """Send the completion."""
        wire.send(self.completion(call))

    def completion(self, call: Call) -> dict[str, Any]:
        """Return the response body."""
        text = _text_for(self.text, call)
        message = {"role": "assistant", "content": text, "refusal": None}
        response = _completion(call, message, self.finish_reason, self._usage(call, text))
        return response if self.model is None else response | {"model": self.model}

    def _usage(self, call: Call, text: str) -> Mapping[str, Any] | None:
        if self.usage != "counted":
            return self.usage
        return usage(len(call.prompt.split()), len(text.split()), self.cached_tokens)


@dataclass(frozen=True)
class Drip:
    """Send a valid chat reply in small parts over `seconds`, so that no single read waits long."""

    seconds: float
    text: str = "ok"

    def play(self, call: Call, wire: Wire) -> None:
        """Send the reply in ten parts."""
        wire.drip(Reply(self.text).completion(call), self.seconds)


@dataclass(frozen=True)
class Truncated:
    """Respond with the first `keep` characters of `text` and the finish_reason "length"."""

    text: Text = '{"entries": [{"content": "cut off here"}]}'
    keep: int = 24

    def play(self, call: Call, wire: Wire) -> None:
        """Send the beginning of the text."""
        Reply(_text_for(self.text, call)[: self.keep], "length").play(call, wire)


@dataclass(frozen=True)
class Thinking:
    """Respond with a `<think>` block before the text, as reasoning models do."""

    text: Text
    thought: str = 'The user wants JSON. Perhaps {"draft": true}? No.'

    def play(self, call: Call, wire: Wire) -> None:
        """Send the block and the text."""
        Reply(f"<think>\n{self.thought}\n</think>\n\n{_text_for(self.text, call)}").play(call, wire)


@dataclass(frozen=True)
class Fenced:
    """Respond with the text in a code fence, with words around it."""

    text: Text
    language: str = "json"

    def play(self, call: Call, wire: Wire) -> None:
        """Send the fenced text."""
        fence = f"```{self.language}\n{_text_for(self.text, call)}\n```"
        Reply(f"Here is what you asked for:\n\n{fence}\n\nAnything else?").play(call, wire)


@dataclass(frozen=True)
class Refusal:
    """Respond with a refusal in the field `refusal`; the content is null."""

    text: str = "I can't help with that."

    def play(self, call: Call, wire: Wire) -> None:
        """Send the refusal."""
        message = {"role": "assistant", "content": None, "refusal": self.text}
        wire.send(_completion(call, message, "stop", usage(len(call.prompt.split()), 0)))


@dataclass(frozen=True)
class EmptyChoices:
    """Respond with an empty list of choices."""

    def play(self, call: Call, wire: Wire) -> None:
        """Send the empty list."""
        wire.send(Reply("").completion(call) | {"choices": []})


def usage(prompt: int, completion: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """Return OpenAI's usage object; the prompt includes cached tokens, the completion includes reasoning."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def _text_for(text: Text, call: Call) -> str:
    return text if isinstance(text, str) else text(call)


def _completion(
    call: Call, message: Mapping[str, Any], finish_reason: str, usage_object: Mapping[str, Any] | None
) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}
    response = {
        "id": "chatcmpl-stand-in",
        "object": "chat.completion",
        "created": 0,
        "model": call.model,
        "choices": [choice],
    }
    return response if usage_object is None else response | {"usage": usage_object}
