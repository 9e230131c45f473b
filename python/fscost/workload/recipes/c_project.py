"""`repo`: a git repository of a generated C program that compiles and links, with a few commits."""

import random
from collections.abc import Iterator
from pathlib import Path

from fscost.workload.recipes.git import FILE, new_repository
from fscost.workload.recipes.request import Request
from fscost.workload.recipes.text import vocabulary
from fscost.workload.recipes.tree import branches

_MODULES_PER_DIRECTORY = 6
_FOLDERS = "abcde"
_FUNCTIONS = 3  # per module
_COMMENT_LINES = 30  # per function
_INCLUDES = 12  # per source; make reads them, which updates atimes
_COMMITS = 5  # after the first; each touches a tenth of the modules

_MAKEFILE = """\
CC = cc
CFLAGS = -O0 -pipe -I.
SOURCES := $(shell find src -name '*.c' | sort)
OBJECTS := $(SOURCES:.c=.o)

program: $(OBJECTS)
\t$(CC) -o $@ $^

%.o: %.c
\t$(CC) $(CFLAGS) -MMD -c -o $@ $<

-include $(OBJECTS:.o=.d)

clean:
\trm -f program $(OBJECTS) $(OBJECTS:.o=.d)

.PHONY: clean
"""


def make(folder: Path, request: Request) -> None:
    """Make `files` sources and headers, half each, in nested directories. Every source reads a
    dozen headers, its own and others."""
    modules = max(1, request.number("files") // 2)
    rng = request.rng("commits")
    with new_repository(folder) as importer:
        importer.commit("The program", _first_files(modules, request))
        for change in range(1, _COMMITS + 1):
            touched = sorted(rng.sample(range(modules), max(1, modules // 10)))
            rngs = {module: request.rng(f"source/{module}/{change}") for module in touched}
            sources = [_source(module, modules, rng) for module, rng in rngs.items()]
            importer.commit(f"Change {change}", sources)


def _first_files(modules: int, request: Request) -> Iterator[tuple[bytes, bytes, bytes]]:
    yield FILE, b"Makefile", _MAKEFILE.encode()
    yield FILE, b"src/main.c", _main(modules).encode()
    for module in range(modules):
        yield _header(module, request.rng(f"header/{module}"))
        yield _source(module, modules, request.rng(f"source/{module}/0"))


def _main(modules: int) -> str:
    includes = "".join(f'#include "{_path(module)}.h"\n' for module in range(modules))
    calls = "".join(f"    sum += m{module}_f0(argc);\n" for module in range(modules))
    return (
        f"{includes}\nint main(int argc, char **argv)\n{{\n    int sum = 0;\n   "
        f" (void)argv;\n{calls}    return sum & 1;\n}}\n"
    )


def _header(module: int, rng: random.Random) -> tuple[bytes, bytes, bytes]:
    """Write a header, which includes only headers of earlier modules, so that there are no
    cycles."""
    includes = "".join(f'#include "{_path(other)}.h"\n' for other in _some(rng, module, 2))
    fields = "".join(
        f"    int {word}_{i};  /* {_sentence(rng)} */\n"
        for i, word in enumerate(rng.choices(vocabulary(), k=20))
    )
    functions = "".join(
        f"/* {_sentence(rng)} */\nint m{module}_f{i}(int x);\n" for i in range(_FUNCTIONS)
    )
    text = (
        f"#ifndef M{module}_H\n#define M{module}_H\n{includes}\nstruct m{module}"
        f" {{\n{fields}}};\n\n{functions}\nstatic inline int m{module}_mix(int x)\n{{\n    return x"
        f" * {rng.randrange(3, 1000, 2)} + {rng.randrange(1000)};\n}}\n#endif\n"
    )
    return FILE, f"{_path(module)}.h".encode(), text.encode()


def _source(module: int, modules: int, rng: random.Random) -> tuple[bytes, bytes, bytes]:
    others = [other for other in _some(rng, modules, _INCLUDES) if other != module]
    includes = "".join(f'#include "{_path(other)}.h"\n' for other in [module, *others])
    functions = "".join(_function(module, i, others or [module], rng) for i in range(_FUNCTIONS))
    return (
        FILE,
        f"{_path(module)}.c".encode(),
        f"#include <stdio.h>\n#include <string.h>\n{includes}\n{functions}".encode(),
    )


def _function(module: int, index: int, others: list[int], rng: random.Random) -> str:
    callee = rng.choice(others)
    cases = "".join(
        f"        case {i}: sum += m{rng.choice(others)}_mix(i ^ {rng.randrange(1 << 16)}); break; "
        f" /* {_sentence(rng)} */\n"
        for i in range(6)
    )
    return (
        f"/*\n{_comment(rng)} */\n"
        f"int m{module}_f{index}(int x)\n{{\n    struct m{module} state;\n    int sum = 0;\n   "
        " memset(&state, x, sizeof state);\n"
        f"    for (int i = 0; i < (x & 7); i++) {{\n        switch (i) {{\n{cases}        }}\n   "
        " }\n"
        f'    if (sum < 0)\n        printf("{_sentence(rng)} %d\\n",'
        f" m{callee}_f{rng.randrange(_FUNCTIONS)}(sum));\n    return sum;\n}}\n\n"
    )


def _path(module: int) -> str:
    """Path of a module, breadth first through nested directories: src/m0, … src/a/m6 … It is also
    the path in #include."""
    folders = branches(module // _MODULES_PER_DIRECTORY, _FOLDERS)
    return "/".join(("src", *folders, f"m{module}"))


def _some(rng: random.Random, below: int, count: int) -> list[int]:
    return sorted(rng.sample(range(below), min(below, count)))


def _comment(rng: random.Random) -> str:
    """Write a comment, which gives a source a realistic length at almost no cost to the
    compiler."""
    return "".join(f" * {_sentence(rng)}\n" for _ in range(_COMMENT_LINES))


def _sentence(rng: random.Random) -> str:
    return " ".join(rng.choices(vocabulary(), k=8))
