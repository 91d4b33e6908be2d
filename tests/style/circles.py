# SPDX-License-Identifier: Apache-2.0
#
# circles.py ROOT: fails on circles of files and on arrows upward between folders.
# circles.py --self-test: proves on small made trees that it finds both.
#
# A file depends on a header that it includes, and on the C file that defines a function or variable that it uses. The
# sources are read as text: without comments and strings, a use is the name of a non-static function or variable inside a
# pair of braces or in a macro. Members (after "." or "->") and names that the file itself defines as static are not uses.
# What an inline function of a header uses counts as the header's, except from the C files that include this header: they
# implement it. A call through a table of functions (struct ix_ops) is not seen: that is how a lower layer calls a higher.
import os
import re
import sys
import tempfile

FOLDERS = ["common", "transport", "workloads", "indexes", "check", "harness"]
MAY_USE = {
    "common": [],
    "transport": ["common"],
    "workloads": ["common"],
    "indexes": ["common", "transport"],
    "check": ["common", "transport", "indexes", "workloads"],
    "harness": ["common", "transport", "indexes", "workloads", "check"],
}
PARTS_MAY_USE = {
    "base": [],
    "run": ["base"],
    "points": ["base", "run"],
    "study": ["base", "run", "points"],
    "lab": ["base", "run", "points"],
    "cli": ["base", "run", "points", "study", "lab"],
}
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "defined", "do", "else", "case", "main", "_Static_assert"}


def plain(text):
    """The text without comments and without what strings hold, on the same lines; #include lines are kept."""

    def replace(found):
        token = found.group(0)
        if token[0] == "/":
            return " " + "\n" * token.count("\n")
        return token[0] + token[0]

    text = re.sub(r"\\\n", " \x01", text)
    text = re.sub(r"/\*.*?\*/|//[^\n]*", replace, re.sub(r'"(?:\\.|[^"\\\n])*"|' r"'(?:\\.|[^'\\\n])*'", keep_slashes, text), flags=re.S)
    return text.replace("\x01", "")


def keep_slashes(found):
    # Inside a string nothing starts a comment, and no name is a use.
    return '""' if found.group(0)[0] == '"' else "0"


def includes_of(text):
    return re.findall(r'(?m)^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text)


class Source:
    def __init__(self, path, text):
        self.path = path
        self.includes = includes_of(text)
        text = plain(text)
        macros = re.findall(r"(?m)^[ \t]*#[ \t]*define[ \t]+\w+(.*)$", text)
        text = re.sub(r"(?m)^[ \t]*#[^\n]*$", "", text)
        self.defines = set()
        self.own = set()  # static: hides what other files define by that name
        self.uses = set()
        self.read_blocks(text)
        for macro in macros:
            self.uses.update(names_used(macro))

    def read_blocks(self, text):
        """Splits the text into what is outside braces (definitions) and inside (uses)."""
        depth, start, head = 0, 0, ""
        for found in re.finditer(r"[{}]", text):
            if found.group(0) == "{":
                if depth == 0:
                    between = text[start : found.start()]
                    # After "static const struct {...}" follows the name of the variable.
                    head = between if ";" in between or "(" in head else head + between
                    self.read_head(head)
                    start = found.end()
                depth += 1
            else:
                depth -= 1
                if depth == 0:
                    is_type = re.search(r"\b(struct|union|enum)\s*\w*\s*$", head)
                    if not is_type:
                        self.uses.update(names_used(text[start : found.start()]))
                    start = found.end()
                    head = head if is_type else ""
        self.read_head(text[start:])

    def read_head(self, head):
        """What is between two blocks: earlier declarations, then perhaps the head of a definition."""
        statements = head.split(";")
        for statement in statements[:-1]:
            variable = re.match(r"\s*static\b[\s\w*]*?\b(\w+)\s*(?:\[|=|$)", statement)
            if variable:
                self.own.add(variable.group(1))
            if re.match(r"\s*(static|extern|typedef)\b", statement):
                continue
            variable = re.match(r"[\s\w*]*?\b(\w+)\s*(?:\[[^=]*\])?\s*=[^=]", statement)
            if variable:
                self.defines.add(variable.group(1))
                self.uses.update(names_used(statement.split("=", 1)[1]))
        last = statements[-1].strip()
        if re.search(r"\btypedef\b", last):
            return
        names = self.own if re.search(r"\bstatic\b", last) else self.defines
        variable = re.match(r"[\s\w*]*?\b(\w+)\s*(?:\[[^=]*\])?\s*=\s*$", last)
        function = re.match(r"(?:[\w*]+[\s*]+)+?(\w+)\s*\(", last)
        if variable:
            names.add(variable.group(1))
        elif function and function.group(1) not in KEYWORDS:
            names.add(function.group(1))


def names_used(text):
    text = re.sub(r"\b(struct|union|enum)\s+\w+", " ", text)
    return set(re.findall(r"(?<![\w.>])[A-Za-z_]\w*", text)) | set(re.findall(r"(?<=[^-]>)[A-Za-z_]\w*", text))


def read_tree(root):
    sources = {}
    for folder in FOLDERS:
        for where, _, names in sorted(os.walk(os.path.join(root, folder))):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    full = os.path.join(where, name)
                    path = os.path.relpath(full, root)
                    sources[path] = Source(path, open(full, encoding="utf-8").read())
    return sources


def arrows_of(sources):
    """{from: {to: what the arrow is}}"""
    arrows = {path: {} for path in sources}
    included = {path: set() for path in sources}
    for path, source in sources.items():
        for name in source.includes:
            for target in (name, os.path.normpath(os.path.join(os.path.dirname(path), name))):
                if target in sources:
                    arrows[path][target] = "#include"
                    included[path].add(target)
                    break
    definers = {}
    for path, source in sources.items():
        if path.endswith(".c"):
            for name in source.defines:
                definers.setdefault(name, set()).add(path)
    for path, source in sources.items():
        for name in sorted((source.uses & definers.keys()) - source.own):
            for target in definers[name]:
                if target == path or path in definers[name]:
                    continue
                if path.endswith(".h") and path in included[target]:
                    continue
                arrows[path].setdefault(target, name)
    return arrows


def components(arrows):
    """Strongly connected components of more than one file (Tarjan, without recursion)."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for first in sorted(arrows):
        if first in index:
            continue
        work = [(first, iter(sorted(arrows[first])))]
        index[first] = low[first] = len(index)
        stack.append(first)
        on_stack.add(first)
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(sorted(arrows[target]))))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while not group or group[-1] != node:
                        group.append(stack.pop())
                        on_stack.discard(group[-1])
                    if len(group) > 1 or node in arrows[node]:
                        found.append(sorted(group))
    return sorted(found)


def shortest_circle(group, arrows):
    best = None
    for first in group:
        paths = {first: [first]}
        queue = [first]
        for node in queue:
            for target in sorted(arrows[node]):
                if target == first and (best is None or len(paths[node]) < len(best)):
                    best = paths[node]
                if target in group and target not in paths:
                    paths[target] = paths[node] + [target]
                    queue.append(target)
    return best


def show_circle(group, arrows):
    circle = shortest_circle(group, arrows)
    print(f"a circle of {len(group)} files: {' '.join(group)}")
    print("  its shortest round:")
    for at, node in enumerate(circle):
        target = circle[(at + 1) % len(circle)]
        print(f"    {node} -> {target}  ({arrows[node][target]})")


def part_of(path):
    words = path.split("/")
    return words[1] if words[0] == "harness" and len(words) > 2 else None


def index_of(path):
    words = path.split("/")
    return words[1] if words[0] == "indexes" and len(words) > 2 else None


def upward(path, target):
    """Why this arrow may not be, or None."""
    own, other = path.split("/")[0], target.split("/")[0]
    if own != other:
        return None if other in MAY_USE[own] else f"{own} must not use {other}"
    if own == "harness":
        own, other = part_of(path), part_of(target)
        if own and other and own != other and other not in PARTS_MAY_USE.get(own, []):
            return f"harness/{own} must not use harness/{other}"
    if own == "indexes":
        own, other = index_of(path), index_of(target)
        if own and own != other and other not in ("shared", None):
            return f"indexes/{own} must not use indexes/{other}"
    return None


def judge(root):
    """Prints what is wrong; the number of complaints."""
    sources = read_tree(root)
    arrows = arrows_of(sources)
    complaints = 0
    for group in components(arrows):
        show_circle(group, arrows)
        complaints += 1
    for path in sorted(arrows):
        if path.startswith("harness/") and part_of(path) not in PARTS_MAY_USE:
            print(f"{path}: is in no part of the harness")
            complaints += 1
        for target in sorted(arrows[path]):
            why = upward(path, target)
            if why:
                print(f"{path} -> {target}  ({arrows[path][target]}): {why}")
                complaints += 1
    return complaints


GOOD = {
    "common/err.h": "int dm_fail(int code);\n",
    "common/err.c": '#include "common/err.h"\n\nint dm_fail(int code) {\n    return code;\n}\n',
    "transport/dm.h": '#include "common/err.h"\nint dm_read(void);\nstatic inline int dm_get(void) {\n    return dm_read();\n}\n',
    "transport/dm.c": '#include "transport/dm.h"\n\nint dm_read(void) {\n    return dm_fail(0); /* not tree_find() */\n}\n',
    "indexes/tree/tree.h": "struct node;\nint tree_find(struct node *n);\nint tree_split(struct node *n);\nextern const int tree_rows[];\n",
    "indexes/tree/tree.c": '#include "indexes/tree/tree.h"\n#include "transport/dm.h"\n\nint tree_find(struct node *n) {\n'
    '    const char *text = "tree_split(n)";\n    return dm_read() + tree_rows[0] + n->tree_split + (text != 0);\n}\n',
    "indexes/tree/split.c": '#include "indexes/tree/tree.h"\n\nconst int tree_rows[] = {1};\nint tree_split(struct node *n) {\n'
    "    (void)n;\n    return 0;\n}\n",
    "harness/run/driver.h": "int hx_drive(void);\n",
    "harness/run/driver.c": '#include "harness/run/driver.h"\n\nint hx_drive(void) {\n    return 0;\n}\n',
    "harness/cli/main.c": '#include "harness/run/driver.h"\n\nint main(void) {\n    return hx_drive();\n}\n',
}
# Each case: what it proves, the files that differ from GOOD, complaints expected.
CASES = [
    ("a tree without circles passes", {}, 0),
    (
        "a circle by calls alone",
        {"indexes/tree/split.c": GOOD["indexes/tree/split.c"].replace("return 0", "return tree_find(n)")},
        1,
    ),
    (
        "a circle by a variable",
        {
            "indexes/tree/split.c": "const int tree_rows[] = {1};\nint tree_split(int n) {\n    return tree_last + n;\n}\n",
            "indexes/tree/tree.h": "extern const int tree_rows[];\nextern int tree_last;\n",
            "indexes/tree/tree.c": "int tree_last = 1;\nint tree_find(void) {\n    return tree_rows[0];\n}\n",
        },
        1,
    ),
    (
        "a circle of headers",
        {"transport/dm.h": '#include "transport/part.h"\n', "transport/part.h": '#include "transport/dm.h"\n'},
        1,
    ),
    (
        "a circle through a function in a table",
        {
            "indexes/tree/split.c": "int tree_split(int n) {\n    static int (*const row[])(int) = {tree_find};\n    return row[0](n);\n}\n",
            "indexes/tree/tree.c": "int tree_find(int n) {\n    return tree_split(n);\n}\n",
        },
        1,
    ),
    ("an include upward", {"common/err.h": '#include "transport/part.h"\n', "transport/part.h": "\n"}, 1),
    ("a call upward without an include", {"common/late.c": "int dm_late(void) {\n    return dm_read();\n}\n"}, 1),
    ("workloads know only common", {"workloads/ycsb.c": "int wl_next(void) {\n    return dm_read();\n}\n"}, 1),
    ("check may not use the harness", {"check/late.c": "int ck_late(void) {\n    return hx_drive();\n}\n"}, 1),
    (
        "a part of the harness that uses one above it",
        {
            "harness/run/late.c": "int hx_late(void) {\n    return hx_points();\n}\n",
            "harness/points/points.c": "int hx_points(void) {\n    return 0;\n}\n",
        },
        1,
    ),
    ("a file of the harness in no part", {"harness/late.c": "int hx_late(void) {\n    return 0;\n}\n"}, 1),
    (
        "study and lab do not use each other",
        {
            "harness/lab/late.c": "int hx_late(void) {\n    return hx_study();\n}\n",
            "harness/study/study.c": "int hx_study(void) {\n    return 0;\n}\n",
        },
        1,
    ),
    ("an index that uses another", {"indexes/bush/bush.c": "int bush_find(void) {\n    return tree_find(0);\n}\n"}, 1),
    (
        "what indexes share uses none of them",
        {"indexes/shared/late.c": "int ix_late(void) {\n    return tree_find(0);\n}\n"},
        1,
    ),
]


def self_test():
    failures = 0
    for name, differing, expected in CASES:
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**GOOD, **differing}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as out:
                    out.write(text)
            found = judge(root)
            print(f"self-test: {name}: {found} complaints, {expected} expected")
            failures += found != expected
    return failures > 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    return judge(sys.argv[1]) > 0


sys.exit(main())
