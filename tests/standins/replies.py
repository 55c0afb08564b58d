"""Replies of a chat model: right ones, and those that models really send instead."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.standins.wire import Call, Wire

Text = str | Callable[[Call], str]
Usage = Mapping[str, Any] | None | Literal["counted"]


@dataclass(frozen=True)
class Reply:
    """Answer a chat request: `text`, or what a function makes of the call.

    `usage` is counted in words, or sent as given, or left out (None).
    """

    text: Text = "ok"
    finish_reason: str = "stop"
    usage: Usage = "counted"
    cached_tokens: int = 0

    def play(self, call: Call, wire: Wire) -> None:
        """Send the completion."""
        wire.send(self.completion(call))

    def completion(self, call: Call) -> dict[str, Any]:
        """Return the whole answer."""
        text = _said(self.text, call)
        message = {"role": "assistant", "content": text, "refusal": None}
        return _completion(call, message, self.finish_reason, self._usage(call, text))

    def _usage(self, call: Call, text: str) -> Mapping[str, Any] | None:
        if self.usage != "counted":
            return self.usage
        return usage(len(call.prompt.split()), len(text.split()), self.cached_tokens)


@dataclass(frozen=True)
class Drip:
    """Send a valid chat reply bit by bit over `seconds`: no single read ever waits long."""

    seconds: float
    text: str = "ok"

    def play(self, call: Call, wire: Wire) -> None:
        """Send in ten parts."""
        wire.drip(Reply(self.text).completion(call), self.seconds)


@dataclass(frozen=True)
class Truncated:
    """Stop in the middle of `text`: finish_reason is "length", the text is cut at `keep` characters."""

    text: Text = '{"entries": [{"content": "cut off here"}]}'
    keep: int = 24

    def play(self, call: Call, wire: Wire) -> None:
        """Send the beginning."""
        Reply(_said(self.text, call)[: self.keep], "length").play(call, wire)


@dataclass(frozen=True)
class Thinking:
    """Put a `<think>` block before the text, as reasoning models do."""

    text: Text
    thought: str = 'The user wants JSON. Perhaps {"draft": true}? No.'

    def play(self, call: Call, wire: Wire) -> None:
        """Send both."""
        Reply(f"<think>\n{self.thought}\n</think>\n\n{_said(self.text, call)}").play(call, wire)


@dataclass(frozen=True)
class Fenced:
    """Wrap the text in a code fence with words around it."""

    text: Text
    language: str = "json"

    def play(self, call: Call, wire: Wire) -> None:
        """Send it wrapped."""
        fence = f"```{self.language}\n{_said(self.text, call)}\n```"
        Reply(f"Here is what you asked for:\n\n{fence}\n\nAnything else?").play(call, wire)


@dataclass(frozen=True)
class Refusal:
    """Decline in the field made for it; the content is null."""

    text: str = "I can't help with that."

    def play(self, call: Call, wire: Wire) -> None:
        """Send the refusal."""
        message = {"role": "assistant", "content": None, "refusal": self.text}
        wire.send(_completion(call, message, "stop", usage(len(call.prompt.split()), 0)))


@dataclass(frozen=True)
class EmptyChoices:
    """Answer with no choice at all."""

    def play(self, call: Call, wire: Wire) -> None:
        """Send the empty list."""
        wire.send(Reply("").completion(call) | {"choices": []})


def usage(prompt: int, completion: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    """Return OpenAI's usage object; cached tokens are part of the prompt, reasoning of the completion."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }


def _said(text: Text, call: Call) -> str:
    return text if isinstance(text, str) else text(call)


def _completion(
    call: Call, message: Mapping[str, Any], finish_reason: str, used: Mapping[str, Any] | None
) -> dict[str, Any]:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, "logprobs": None}
    answer = {
        "id": "chatcmpl-stand-in",
        "object": "chat.completion",
        "created": 0,
        "model": call.model,
        "choices": [choice],
    }
    return answer if used is None else answer | {"usage": used}
