"""Builds a program in Go that has copied the worker."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


def build(folder: Path, go: str) -> Path:
    """The program of `main.go` and `worker/worker.go` in a folder; what `go vet` finds is an error."""
    (folder / "go.mod").write_text("module trial\n\ngo 1.18\n")
    options = {**os.environ, "GOFLAGS": "-mod=mod", "GOPROXY": "off", "CGO_ENABLED": "0"}
    for words in (["vet", "./..."], ["build", "-o", "trial", "."]):
        subprocess.run([go, *words], cwd=folder, env=options, check=True)
    return folder / "trial"
