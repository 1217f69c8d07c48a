"""From a keystroke to its diagnostics: the real server process and a 1,000-line training script.

    python tests/benchmarks/server_latency.py [--lines 1000] [--keystrokes 40] [--limit-ms 150]

Opens the script, types single characters in and around its training loop (each one a version of its own), and
measures from the moment the change is written to the moment the diagnostics of that version arrive. Prints the
median and the tails; with --limit-ms, exits with 1 when the median is above it.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LOOP = """
def train(args, model, loader, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scaler = torch.amp.GradScaler(device, enabled=args.fp16)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.steps)
    criterion = torch.nn.CrossEntropyLoss()
    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        for i, (images, labels) in enumerate(loader):
            images, labels = images.to(device), labels.to(device)
            with torch.autocast(device, enabled=args.fp16):
                loss = criterion(model(images), labels)
                if args.penalty:
                    loss = loss + args.penalty * sum(p.norm() for p in model.parameters())
            scaler.scale(loss / args.accum).backward()
            if (i + 1) % args.accum == 0:
                if args.clip:
                    scaler.unscale_(optimizer)
                    torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                scheduler.step()
            if i % args.log_every == 0:
                print(f"{epoch} {i} {loss.item():.4f}")
        best = max(best, evaluate(model, loader, device))
    return best
"""

FILLER = '''
class Block{n}(torch.nn.Module):
    """A residual block with its own normalisation."""

    def __init__(self, width, hidden=4 * {n} + 4, dropout=0.1):
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, hidden)
        self.down = torch.nn.Linear(hidden, width)
        self.dropout = torch.nn.Dropout(dropout)

    def forward(self, x, mask=None):
        y = self.down(torch.nn.functional.gelu(self.up(self.norm(x))))
        if mask is not None:
            y = y * mask.unsqueeze(-1)
        return x + self.dropout(y)


def load_{n}(path, split="train", limit=None):
    with open(path) as stream:
        rows = [json.loads(line) for line in stream]
    rows = [row for row in rows if row["split"] == split][:limit]
    return [(torch.tensor(row["x"]), int(row["y"])) for row in rows]

'''


def script(lines: int) -> str:
    """A training script of about so many lines whose loop stands in the middle."""
    out = '"""Trains a classifier."""\n\nimport argparse\nimport json\n\nimport torch\n'
    number = 0
    done = False
    while out.count("\n") < lines:
        if not done and out.count("\n") > lines // 2:
            out += LOOP
            done = True
        out += FILLER.format(n=number)
        number += 1
    return "\n".join(out.splitlines()[:lines]) + "\n"


class Client:
    """The least client that can measure: it writes a message and reads until an answer fits."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "galint", "server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.number = 0

    def send(self, **message: Any) -> None:
        """Write one message."""
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Read one message."""
        assert self.process.stdout is not None
        length = 0
        while (line := self.process.stdout.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        message = json.loads(self.process.stdout.read(length))
        assert isinstance(message, dict)
        return message

    def request(self, method: str, params: Any) -> Any:
        """Ask and wait for the answer."""
        self.number += 1
        self.send(id=self.number, method=method, params=params)
        while (answer := self.receive()).get("id") != self.number or "method" in answer:
            pass
        return answer["result"]

    def processor_seconds(self) -> float:
        """What the server has computed so far; 0 where there is no /proc."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def diagnostics(self, version: int) -> list[Any]:
        """Wait for the findings of a version of the text."""
        while True:
            message = self.receive()
            if message.get("method") == "textDocument/publishDiagnostics":
                params = message["params"]
                if params.get("version") == version:
                    found = params["diagnostics"]
                    assert isinstance(found, list)
                    return found


def keystrokes(text: str, count: int) -> list[tuple[int, int, int, str]]:
    """(line, start, end, new text): a comment typed behind the loss, and an index broken and mended."""
    lines = text.splitlines()
    loss = next(i for i, line in enumerate(lines) if "scaler.scale(loss" in line)
    guard = next(i for i, line in enumerate(lines) if "if (i + 1) % args.accum" in line)
    out: list[tuple[int, int, int, str]] = []
    end = len(lines[loss])
    plus = lines[guard].index("1")
    for number in range(count):
        if number % 4 == 3:
            old = "1" if (number // 4) % 2 == 0 else "0"
            out.append((guard, plus, plus + len(old), "0" if old == "1" else "1"))
        else:
            char = "  # a note about this very line, typed by hand "[len(out) % 40]
            out.append((loss, end, end, char if end > len(lines[loss]) + 2 else " #x"[end - len(lines[loss])]))
            end += 1
    return out


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--keystrokes", type=int, default=40)
    parser.add_argument("--pause-ms", type=float, default=150, help="between keystrokes: a fast typist")
    parser.add_argument("--limit-ms", type=float)
    args = parser.parse_args()
    text = script(args.lines)
    client = Client()
    client.request("initialize", {"processId": None, "rootUri": None, "capabilities": {}})
    client.send(method="initialized", params={})
    document = {"uri": "untitled:train.py", "languageId": "python", "version": 1, "text": text}
    started = time.perf_counter()
    client.send(method="textDocument/didOpen", params={"textDocument": document})
    client.diagnostics(1)
    opened = time.perf_counter() - started
    times, seen = [], set()
    busy = client.processor_seconds()
    for version, (line, start, end, new) in enumerate(keystrokes(text, args.keystrokes), 2):
        edge = {"start": {"line": line, "character": start}, "end": {"line": line, "character": end}}
        started = time.perf_counter()
        client.send(
            method="textDocument/didChange",
            params={
                "textDocument": {"uri": document["uri"], "version": version},
                "contentChanges": [{"range": edge, "text": new}],
            },
        )
        seen.add(tuple(sorted(d["code"] for d in client.diagnostics(version))))
        times.append((time.perf_counter() - started) * 1000)
        time.sleep(args.pause_ms / 1000)
    busy = client.processor_seconds() - busy
    client.request("shutdown", None)
    client.send(method="exit", params=None)
    client.process.wait(10)
    assert len(seen) > 1, "no keystroke changed a finding: nothing was measured"
    median = statistics.median(times)
    slow = sorted(times)[int(len(times) * 0.95) - 1]
    print(f"{len(text.splitlines())} lines, {len(times)} keystrokes, findings seen: {sorted(seen)}")
    print(f"open {opened * 1000:.0f} ms; median {median:.0f} ms, 95% {slow:.0f} ms, worst {max(times):.0f} ms")
    print(
        f"processor time of the server: {busy * 1000 / len(times):.0f} ms a keystroke (whatever else the machine does)"
    )
    return 1 if args.limit_ms is not None and median > args.limit_ms else 0


if __name__ == "__main__":
    raise SystemExit(main())
