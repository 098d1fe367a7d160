"""Ask a pool from an application: whole answers, a stream, and a cancel from another thread.

Run it from the repository: python examples/embed.py
"""

from __future__ import annotations

import threading
from pathlib import Path

from macr_local import Finished, Pool, Prompt, Relay, Relayed, Text

SCENE = Path(__file__).parent / "scene.png"


def main() -> None:
    with Pool.open("tiny") as pool:
        relay = Relay(pool)
        prompt = Prompt.of("how many white circles are there?", SCENE)

        answer = relay.ask(prompt)
        print("answer:", answer.text.splitlines()[-1])
        for segment in answer.segments:
            print(f"  {segment.member:15} {segment.text!r}")

        print("stream:", end=" ")
        with relay.stream(prompt) as stream:
            for event in stream:
                if isinstance(event, Relayed):
                    print(f"[{event.winner}]", end="")
                elif isinstance(event, Text) and not event.thought:
                    print(event.text.replace("\n", " "), end="", flush=True)
        print()

        # A cancelled question ends with the reason "cancelled" and what was written until then.
        stream = relay.stream(prompt)
        threading.Timer(0.01, stream.cancel).start()
        with stream:
            last = list(stream)[-1]
        print("cancelled or done:", last.reason if isinstance(last, Finished) else last)


if __name__ == "__main__":
    main()
