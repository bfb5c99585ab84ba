"""A registry of npm packages on loopback, and wheels in a folder: what runners start, without the public registries."""

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

NODE = """#!/usr/bin/env node
const fs = require('fs'), path = require('path');
const tried = (work) => { try { work(); return 'done'; } catch (error) { return error.code; } };
const about = () => JSON.stringify({
  file: fs.realpathSync(process.argv[1]),
  name: path.basename(process.argv[1]),
  args: process.argv.slice(2),
  version: 'VERSION',
  scripts: fs.existsSync(path.join(__dirname, 'script-ran')),
  changes: tried(() => fs.writeFileSync(path.join(__dirname, 'changed'), 'x')),
  graph: process.env.MEMORY_FILE_PATH || '',
  added: tried(() => fs.appendFileSync(process.env.MEMORY_FILE_PATH, '+')),
});
require('readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const results = {
    initialize: () => ({
      protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' },
    }),
    'tools/list': () => ({ tools: [{ name: 'about', inputSchema: { type: 'object' } }] }),
    'tools/call': () => ({ content: [{ type: 'text', text: about() }] }),
  };
  const answer = results[method] ? { result: results[method]() } : { error: { code: -32601, message: 'no' } };
  console.log(JSON.stringify({ jsonrpc: '2.0', id, ...answer }));
});
"""
PYTHON = """
import json, os, sys

def tried():
    try:
        open(os.path.join(os.path.dirname(__file__), "changed"), "w").close()
    except OSError as error:
        return error.strerror
    return "done"

def main():
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        about = {"file": __file__, "name": os.path.basename(sys.argv[0]), "args": sys.argv[1:], "version": "VERSION",
                 "scripts": os.path.exists(os.environ.get("MARK", "/none")), "changes": tried()}
        results = {
            "initialize": lambda: {"protocolVersion": message["params"]["protocolVersion"],
                                   "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}},
            "tools/list": lambda: {"tools": [{"name": "about", "inputSchema": {"type": "object"}}]},
            "tools/call": lambda: {"content": [{"type": "text", "text": json.dumps(about)}]},
        }
        found = results.get(message["method"])
        answer = {"result": found()} if found else {"error": {"code": -32601, "message": "no"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""
BACKEND = """
import os, pathlib, shutil

def build_wheel(folder, config_settings=None, metadata_directory=None):
    pathlib.Path(os.environ["MARK"]).touch()
    wheel = next(pathlib.Path(__file__).parent.glob("*.whl"))
    shutil.copy(wheel, folder)
    return wheel.name
"""


@dataclass
class Registry:
    """A registry; ``asked`` are the paths that were asked for, ``refuses`` answers all with this status.

    With a ``token`` it answers those alone who send it.
    """

    url: str = ""
    refuses: int = 0
    token: str = ""
    asked: list[str] = field(default_factory=list)
    packages: dict[str, dict[str, bytes]] = field(default_factory=dict)
    manifests: dict[str, dict[str, object]] = field(default_factory=dict)

    def publish(self, name: str, version: str, programs: Mapping[str, str], *, script: str = "") -> None:
        """Publish a package whose programs, by name and file, are servers; ``script`` runs once it is installed."""
        manifest = {"name": name, "version": version, "bin": dict(programs)}
        manifest |= {"scripts": {"postinstall": script}} if script else {}
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as archive:
            for file in {"package.json", *programs.values()}:
                text = json.dumps(manifest) if file == "package.json" else NODE.replace("VERSION", version)
                entry = tarfile.TarInfo(f"package/{file}")
                entry.size, entry.mode = len(text.encode()), 0o755
                archive.addfile(entry, io.BytesIO(text.encode()))
        data = packed.getvalue()
        digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
        dist = {"tarball": f"{self.url}/-/{name}-{version}.tgz", "integrity": f"sha512-{digest}"}
        self.packages.setdefault(name, {})[version] = data
        self.manifests.setdefault(name, {})[version] = {**manifest, "hasInstallScript": bool(script), "dist": dist}

    def answer(self, path: str) -> bytes | None:
        """Return what is at a path."""
        self.asked.append(path)
        name = path.strip("/").replace("%2f", "/")
        for known, versions in self.packages.items():
            for version, data in versions.items():
                if name == f"-/{known}-{version}.tgz":
                    return data
        if name not in self.manifests:
            return None
        found = self.manifests[name]
        return json.dumps({"name": name, "dist-tags": {"latest": list(found)[-1]}, "versions": found}).encode()


@contextmanager
def registry() -> Iterator[Registry]:
    """Serve a registry on loopback."""
    own = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = not own.token or self.headers.get("Authorization") == f"Bearer {own.token}"
            refuses = own.refuses if known else 401
            body = None if refuses else own.answer(self.path)
            self.send_response(200 if body is not None else refuses or 404)
            self.send_header("Content-Length", str(len(body or b"{}")))
            self.end_headers()
            self.wfile.write(body or b"{}")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Write nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        own.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield own
        finally:
            server.shutdown()
            thread.join()


def wheel(folder: Path, name: str, version: str, programs: tuple[str, ...]) -> Path:
    """Write a wheel whose programs are servers."""
    info = f"{name}-{version}.dist-info"
    scripts = "".join(f"{program} = {name}:main\n" for program in programs)
    files = {
        f"{name}.py": PYTHON.replace("VERSION", version),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[console_scripts]\n{scripts}",
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in (*files, f"{info}/RECORD"))
    folder.mkdir(exist_ok=True, parents=True)
    with zipfile.ZipFile(made := folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return made


def source_package(folder: Path, name: str, version: str) -> None:
    """Write a package that has to be built, by code of its own which leaves a mark."""
    built = wheel(folder / "built", name, version, (name,))
    build = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    project = f'{build}[project]\nname = "{name}"\nversion = "{version}"\ndependencies = []\n'
    files = {"pyproject.toml": project.encode(), "backend.py": BACKEND.encode(), built.name: built.read_bytes()}
    files["PKG-INFO"] = f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n".encode()
    with tarfile.open(folder / f"{name}-{version}.tar.gz", "w:gz") as archive:
        for file, data in files.items():
            entry = tarfile.TarInfo(f"{name}-{version}/{file}")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
