"""From where Pegboard and what is not confined are run: what is changed there, the next start runs (A7, P10)."""

from __future__ import annotations

import os
import re
import shutil
import site
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from pegboard.core.access.named_paths import is_script
from pegboard.core.model.references import references_in, words
from pegboard.core.model.specs import PluginSpec, RegisteredSpec, ServerSpec
from pegboard.support.imported_modules import with_imports

ANY: Final = "*"
"""The last part of a path that stands for whatever is made in a folder, and not for what lies deeper."""
_ENVIRONMENT: Final = "the Python environment that Pegboard runs from"
_PATH: Final = "a folder of `PATH`, in which programs are looked for"
_FOLDER_OPTIONS: Final = ("--directory", "--project", "--prefix", "--cwd", "--dir", "-C", "--project-directory")
_PACKAGE_OPTIONS: Final = ("--from", "--with", "--with-editable", "--with-requirements", "--spec", "--package")
_PACKAGE_RUNNERS: Final = ("uvx", "pipx")
_INTERPRETERS: Final = frozenset(
    (
        *(
            "bash",
            "bun",
            "dash",
            "deno",
            "fish",
            "gmake",
            "java",
            "ksh",
            "lua",
            "make",
            "node",
            "nodejs",
            "perl",
            "php",
        ),
        *("pwsh", "pypy", "python", "pythonw", "rscript", "ruby", "sh", "ts-node", "tsx", "zsh"),
    )
)
"""What runs a file of any name; a number behind it is its version."""
_OF_SHELLS: Final = ("-c", "-lc", "-ec")
"""Options behind which a shell is given commands."""
NO_FILE: Final = (*_OF_SHELLS, "-m", "-e", "--eval", "-p", "--print")
"""Options behind which an interpreter is given code or a module, and no file."""
_PATH_LISTS: Final = ("PATH", "PYTHONPATH", "NODE_PATH")
_OF_CODE: Final = re.compile(
    r"LD_\w+|DYLD_\w+|PYTHON\w+|NODE_\w+|RUBY\w+|PERL5\w+|LUA_\w+|JAVA_\w+|JDK_\w+|CLASSPATH|BASH_ENV|ENV|ZDOTDIR"
    r"|VIRTUAL_ENV|(?:PIP|NPM|npm)_\w+|XDG_CONFIG_\w+"
    r"|GIT_(?:CONFIG|DIR|EXEC|SSH|TEMPLATE)\w*|UV_(?:CACHE|CONFIG|PROJECT_ENV|PYTHON|TOOL)\w*"
)
"""Variables in whose values paths are of code, or of settings that name code."""
_PIECES: Final = re.compile(r"[\s=,;:]+")
_OF_NODE: Final = ("node_modules", "package.json", ".npmrc", ".yarnrc.yml", "bunfig.toml", "deno.json")
_OF_PYTHON: Final = (".venv", "pyproject.toml", "uv.lock", "uv.toml", "poetry.toml", "Pipfile", "setup.py", "setup.cfg")
_OF_MAKE: Final = ("GNUmakefile", "makefile", "Makefile")
_OF_COMPOSE: Final = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml")
_OF_RUNNERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "node", "deno", "tsx"), _OF_NODE),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye", "pipenv"), _OF_PYTHON),
    **dict.fromkeys(("make", "gmake"), _OF_MAKE),
    **dict.fromkeys(("compose", "docker-compose", "podman-compose"), _OF_COMPOSE),
}
"""What a runner takes programs, packages and settings from, in the folder where it is started and above."""
_BY_WHAT_IS_THERE: Final = ("node", "npx")
"""Runners of which only what is there counts: one looks beside its script, the other is told where not to look."""
_UV_TOOL: Final = ("tool", "run")
"""A command of uv that takes nothing from a project."""
_MOST_LINKS: Final = 100
_SHEBANG: Final = 256

_StartedPath = tuple[str, str]


def started_code(
    specs: Iterable[PluginSpec], modules: Iterable[str], env: Mapping[str, str], *, beside: str, server_folder: str
) -> Mapping[str, str]:
    """Return the paths that Pegboard and what is not confined are run from, each with what runs from there.

    What cannot be told from the configuration is not among them: what a program loads when it pleases.

    Args:
        specs: the plugins of the configuration.
        modules: the first names of the modules that run in this process.
        env: the environment that programs are looked for in.
        beside: the folder of the configuration, of which the modules are Pegboard's own files one by one.
        server_folder: where servers without a folder of their own start.
    """
    found: dict[str, str] = {}
    places = [*_environment(env), *_modules(modules, "code that the configuration names", beside)]
    places += [each for spec in specs for each in _paths_of_plugin(spec, env, beside, server_folder)]
    for path, what in places:
        for place in _places(path):
            found.setdefault(place, what)
    return found


def _environment(env: Mapping[str, str]) -> Iterator[_StartedPath]:
    """Yield what Pegboard itself is run from: interpreter, packages, its own code, and the programs that it starts."""
    if os.path.isfile(os.path.join(sys.prefix, "pyvenv.cfg")):  # noqa: PTH113, PTH118
        yield sys.prefix, _ENVIRONMENT
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix, "installed_base": sys.base_prefix}
    for paths in (sysconfig.get_paths(), sysconfig.get_paths(vars=base)):
        yield from ((paths[key], _ENVIRONMENT) for key in ("stdlib", "platstdlib", "purelib", "platlib", "scripts"))
    folders = [paths["purelib"], paths["platlib"], *site.getsitepackages()]
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    folders += [line for folder in folders for line in _named_by_packages(folder)]
    folders += filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    folders += filter(None, (sys.executable, sys.pycache_prefix, shutil.which("pegboard")))
    yield from ((folder, _ENVIRONMENT) for folder in (*folders, str(Path(__file__).parents[1])))
    run_as_module = getattr(sys.modules.get("__main__"), "__spec__", None)
    if run_as_module is not None and run_as_module.name.startswith("pegboard") and not sys.flags.safe_path:
        yield os.path.join(sys.path[0], ANY), "the folder that `python -m pegboard` imports from first"  # noqa: PTH118
    yield from ((folder, _PATH) for folder in _path_folders(env))


def _named_by_packages(folder: str) -> Iterator[str]:
    """Yield the folders that the files of installed packages (`.pth`) put on the import path: editable sources."""
    for file in Path(folder).glob("*.pth"):
        with suppress(OSError):
            for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
                if line.strip() and not line.startswith(("#", "import ", "import\t")):
                    yield os.path.join(folder, line.strip())  # noqa: PTH118


def _path_folders(env: Mapping[str, str]) -> Iterator[str]:
    """Yield the folders of ``PATH``; an empty one is the folder where a process is started."""
    for folder in env.get("PATH", "").split(os.pathsep) if env.get("PATH") else ():
        yield folder or os.path.join(os.curdir, ANY)  # noqa: PTH118


def _modules(names: Iterable[str], what: str, beside: str) -> Iterator[_StartedPath]:
    """Yield where modules lie that are not beside the configuration."""
    path = [folder for folder in sys.path if folder != beside]  # which is on it while a plugin is imported
    for name in dict.fromkeys(filter(None, names)):
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path if finder is PathFinder else None)
            if spec is not None:
                places = spec.submodule_search_locations or ([spec.origin] if spec.has_location and spec.origin else ())
                yield from ((place, what) for place in places)
                break


def _paths_of_plugin(
    spec: PluginSpec, env: Mapping[str, str], beside: str, server_folder: str
) -> Iterator[_StartedPath]:
    """Yield what a plugin is run from; of one that is confined nothing but the commands that give it values."""
    if isinstance(spec, ServerSpec):
        yield from _commands(spec, env)
    if spec.confine is not None:
        return
    if isinstance(spec, RegisteredSpec):
        what = f"the code of plugin '{spec.name}', which is not confined"
        yield from _modules([spec.module.partition(".")[0]], what, beside)
    elif isinstance(spec, ServerSpec) and spec.command:
        what = f"the program of server '{spec.name}', which is not confined"
        base = spec.cwd or server_folder
        yield from ((path, what) for path in _program(spec.command, spec.args, base, {**env, **spec.env}))
        yield from ((path, what) for path in _variables(spec.env, base))


def _commands(spec: ServerSpec, env: Mapping[str, str]) -> Iterator[_StartedPath]:
    """Yield what the commands are run from that Pegboard reads values of a server's settings by."""
    for one in references_in(spec.references):
        command = words(one.target) if one.scheme == "cmd" else ("op",) if one.scheme == "op" else ()
        if command:
            what = f"the program of {one.text} for server '{spec.name}', which is not confined"
            base = one.folder or os.getcwd()  # noqa: PTH109
            yield from ((path, what) for path in _program(command[0], command[1:], base, env))


def _program(command: str, args: Sequence[str], base: str, env: Mapping[str, str]) -> Iterator[str]:
    """Yield what a command is run from that is started in a folder, as far as its words tell."""
    named = os.path.join(base, os.path.expanduser(command)) if os.sep in command else None  # noqa: PTH111, PTH118
    if file := named or shutil.which(command, path=env.get("PATH")):
        yield from _file(file)
    folders = [base, *(os.path.join(base, each) for each in _values_of(args, _FOLDER_OPTIONS))]  # noqa: PTH118
    runners = [runner_of(command), *(word for word in args if word == "compose")]
    made = [each for each in runners if each not in _BY_WHAT_IS_THERE and tuple(args[:2]) != _UV_TOOL]
    for folder in dict.fromkeys(folders):
        yield from (path for each in runners for path in runner_files(each, folder, made=each in made))
        yield from _arguments(args, folder)
        yield from _files_after_interpreter((command, *args), folder)
        yield from _packages(runners[0], args, folder)


def runner_of(command: str) -> str:
    """Return the name of a program, whatever its path and its ending."""
    return os.path.basename(command).lower().removesuffix(".exe").removesuffix(".cmd")  # noqa: PTH119


def _variables(env: Mapping[str, str], base: str) -> Iterator[str]:
    """Yield what the environment of a server makes it run, or look for code in."""
    for variable, value in env.items():
        if variable == "HOME" and value and os.path.realpath(value) != os.path.realpath(Path.home()):
            yield from (os.path.join(base, value, ANY), *map(str, Path(base, value).glob(".*")))  # noqa: PTH118
        for piece in filter(None, value.split(os.pathsep) if variable in _PATH_LISTS else _PIECES.split(value)):
            path = os.path.join(base, piece)  # noqa: PTH118
            of_code = _OF_CODE.fullmatch(variable) and (os.sep in piece or os.path.lexists(path))
            if variable in _PATH_LISTS or of_code or (os.path.isfile(path) and _is_run(path)):  # noqa: PTH113
                yield path


def _is_run(path: str) -> bool:
    """Return whether a file is one that is run."""
    named = os.path.basename(path) in (*_OF_MAKE, *_OF_COMPOSE)  # noqa: PTH119
    return named or is_script(path) or os.access(path, os.X_OK)


def _values_of(args: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    """Yield the values of options: the folder of `uv --directory FOLDER run server.py`."""
    for index, text in enumerate(args):
        option, sign, value = text.partition("=")
        if option in options and (sign or index + 1 < len(args)):
            yield value if sign else args[index + 1]


def is_interpreter(word: str) -> bool:
    """Return whether a program runs the first file behind it, whatever its name.

    >>> is_interpreter("/usr/bin/python3.12"), is_interpreter("npx")
    (True, False)
    """
    return runner_of(word).rstrip(".0123456789") in _INTERPRETERS


def value_of(text: str) -> str:
    """Return an argument, or the value behind the name of an option.

    >>> value_of("--import=./hook.mjs"), value_of("a=b")
    ('./hook.mjs', 'a=b')
    """
    option, _, value = text.partition("=")
    return value if value and option.startswith("-") else text


def _files_after_interpreter(command: Sequence[str], folder: str) -> Iterator[str]:
    """Yield the first file behind an interpreter, whatever its name, and those of the interpreter's own options."""
    for index, word in enumerate(command):
        if is_interpreter(word):
            for text in command[index + 1 :]:
                path = os.path.join(folder, os.path.expanduser(value_of(text)))  # noqa: PTH111, PTH118
                if text in NO_FILE:
                    yield from _import_folders(runner_of(word), text, command[index + 1 :], folder)
                    break
                if os.path.isfile(path):  # noqa: PTH113
                    yield from _file(path)
                    if value_of(text) == text:
                        break


def _import_folders(runner: str, option: str, words: Sequence[str], folder: str) -> Iterator[str]:
    """Yield where code that is given in a word looks for modules first: the folder where it is started."""
    if option == "-c" and runner.startswith(("python", "pypy")) and not {"-I", "-P"} & {*words}:
        yield os.path.join(folder, ANY)  # noqa: PTH118
    elif runner.startswith("node"):
        yield os.path.join(folder, "node_modules")  # noqa: PTH118


def _packages(runner: str, args: Sequence[str], folder: str) -> Iterator[str]:
    """Yield the sources of packages that a runner is told to take from a path."""
    named = [each for value in _values_of(args, _PACKAGE_OPTIONS) for each in value.split(",")]
    before = ""
    for text in args if runner in _PACKAGE_RUNNERS else ():
        if text != "run" and not text.startswith("-"):
            named.append(text)
            if not before.startswith("-"):
                break  # the package; what follows is the program's
        before = text
    for name in named:
        plain = name.rpartition("@")[2].strip().removeprefix("file://").partition("[")[0]
        path = os.path.join(folder, os.path.expanduser(plain))  # noqa: PTH111, PTH118
        if plain and os.path.lexists(path):
            yield path


def runner_files(runner: str, folder: str, *, made: bool = False) -> Iterator[str]:
    """Yield what a runner takes programs, packages and settings from, in a folder and above: what is there of that.

    With ``made`` also what is not there yet.
    """
    names = _OF_RUNNERS.get(runner, ())
    home = Path.home()
    for top in (Path(folder), *Path(folder).parents) if names else ():
        yield from (str(top / name) for name in names if made or os.path.lexists(top / name))
        if top == home:
            return


def _arguments(args: Sequence[str], folder: str) -> Iterator[str]:
    """Yield the scripts, modules and folders of code among arguments, as they are found from a folder."""
    before = ""
    for text in args:
        path = os.path.join(folder, os.path.expanduser(value_of(text)))  # noqa: PTH111, PTH118
        if before == "-m":
            yield os.path.join(folder, ANY)  # noqa: PTH118 - Python looks there first
            yield from _python(folder, [text.partition(".")[0]])
        elif before in _OF_SHELLS:
            yield from _arguments(words(text), folder)
            yield from _files_after_interpreter(words(text), folder)
        elif os.path.isfile(path) and _is_run(path):  # noqa: PTH113
            yield from _file(path)
            if path.endswith(".py"):
                top, name = os.path.split(path)
                yield from _python(top, [name.removesuffix(".py")])
        elif any(os.path.isfile(os.path.join(path, name)) for name in ("package.json", "__main__.py")):  # noqa: PTH113, PTH118
            yield path
        before = text


def _python(folder: str, names: Iterable[str]) -> Iterator[str]:
    """Yield modules in a folder with what they import there, and what Python keeps of them."""
    for name in with_imports(folder, names):
        yield from (str(each) for each in (Path(folder, name), Path(folder, f"{name}.py")) if os.path.lexists(each))
    yield os.path.join(folder, "__pycache__")  # noqa: PTH118


def _file(file: str) -> Iterator[str]:
    """Yield a program, the interpreter of its first line, and the environments that these belong to."""
    for path in filter(None, (file, _interpreter(file))):
        yield path
        for place in _places(path):
            prefix = os.path.dirname(os.path.dirname(place))  # noqa: PTH120
            if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):  # noqa: PTH113, PTH118
                yield prefix
            if f"{os.sep}node_modules{os.sep}" in place:
                yield place.partition(f"{os.sep}node_modules{os.sep}")[0] + f"{os.sep}node_modules"


def _interpreter(file: str) -> str:
    """Return the program that the first line of a script names by its path."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            first = opened.read(_SHEBANG).split(b"\n", 1)[0]
    except OSError:
        return ""
    words = os.fsdecode(first.removeprefix(b"#!")).split() if first.startswith(b"#!") else []
    return words[0] if words and os.path.isabs(words[0]) else ""  # noqa: PTH117


def _places(path: str) -> Iterator[str]:
    """Yield where a path leads, and every link on the way: to replace one of these is to replace what is run."""
    rest = [*reversed(Path(Path.cwd(), path).parts)]
    place, links = Path(), 0
    while rest:
        part = rest.pop()
        place = place.parent if part == os.pardir else place / part
        if links < _MOST_LINKS and place.is_symlink():
            links += 1
            yield str(place)
            rest += reversed(place.readlink().parts)  # an absolute one begins with the root, from which it goes on
            place = place.parent
    yield str(place)
