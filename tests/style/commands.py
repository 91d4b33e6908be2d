# SPDX-License-Identifier: Apache-2.0
#
# commands.py PACKAGES FILE...: prints commands that the files start and that no package of the list provides.
#
# Shell is read roughly: comments, quoted text and here-documents are dropped (what is inside "$( )" is kept), and the
# first word of what is left between separators is a command, unless it is the shell's own or a function of the files.
# C files are searched for execlp("name".
import re
import sys

SHELL = set(""". : [ ! { } alias break case cd command continue do done elif else esac eval exec exit export fi for
    function getopts if in kill local printf read readonly return set shift source then times trap ulimit umask unset until
    wait while""".split())
# Words that start another command given as their arguments, after options and assignments.
PREFIXES = {"env", "setsid", "timeout", "xargs", "exec", "step", "quietly", "command", "!"}


def provided(path):
    names = set()
    for line in open(path, encoding="utf-8"):
        columns = line.split("|")
        if not line.startswith("#") and len(columns) == 4:
            names.update(word for word in columns[2].split() if not word.startswith("["))
    return names


def without_documents(text):
    lines, end = [], None
    for line in text.split("\n"):
        if end is not None:
            end = None if line.strip() == end else end
            continue
        lines.append(line)
        found = re.search(r"<<-?\s*['\"]?(\w+)['\"]?", line)
        if found and "<<<" not in line:
            end = found.group(1)
    return "\n".join(lines)


def unquoted(text, start=0, end=None):
    """What is left of text[start:] up to the closing character `end`, and the offset after it: a quoted word is "_", and
    a command substitution, in double quotes too, is put between separators."""
    out, i, depth = [], start, 0
    quoted = end == '"'
    while i < len(text):
        c = text[i]
        if c == end and depth == 0:
            return "".join(out), i + 1
        if c == "\\":
            out.append(" " if text[i + 1 : i + 2] == "\n" else "_")
            i += 2
        elif text.startswith("$((", i) or text.startswith("${", i):
            closing = "))" if text[i + 1] == "(" else "}"
            found = text.find(closing, i)
            out.append("_")
            i = len(text) if found < 0 else found + len(closing)
        elif text.startswith("$(", i):
            inner, i = unquoted(text, i + 2, ")")
            out.append("; " + inner + " ;_")
        elif c == '"' and not quoted:
            inner, i = unquoted(text, i + 1, '"')
            out.append("_ " + inner)
        elif quoted:
            # In double quotes only command substitutions are shell.
            i += 1
        elif c == "'":
            # Single-quoted text is another language.
            found = text.find("'", i + 1)
            out.append("_")
            i = len(text) if found < 0 else found + 1
        elif c == "#" and (i == 0 or text[i - 1].isspace()):
            found = text.find("\n", i)
            i = len(text) if found < 0 else found
        else:
            depth += (c == "(") - (c == ")" and depth > 0)
            out.append(c)
            i += 1
    return "".join(out), i


def commands_of(text):
    text, _ = unquoted(without_documents(text))
    functions = set(re.findall(r"(?m)^\s*(\w+)\(\)", text))
    # Patterns of a case are no commands.
    text = re.sub(r"(?m)^\s*[^\s()]*(?: \| [^\s()]*)*\)", "", text)
    for part in re.split(r"[;\n|&(){}]|\bthen\b|\bdo\b|\belse\b|\bif\b|\bwhile\b|\buntil\b|\belif\b", text):
        words = part.split()
        while words and (re.match(r"\w+=", words[0]) or words[0] in ("!", "$")):
            words.pop(0)
        if words and words[0] in ("for", "case"):
            continue
        while words:
            word = words.pop(0)
            if re.match(r"^[A-Za-z][A-Za-z0-9._+-]*$", word) and word not in SHELL and word not in functions:
                yield word
            if word not in PREFIXES:
                break
            while words and (words[0].startswith("-") or re.match(r"\w+=|\d", words[0])):
                words.pop(0)


def main():
    known = provided(sys.argv[1])
    shell_files = [path for path in sys.argv[2:] if not path.endswith(".c")]
    # Functions of a sourced file are known to those that source it.
    functions = set()
    for path in shell_files:
        functions.update(re.findall(r"(?m)^\s*(\w+)\(\)", open(path, encoding="utf-8").read()))
    bad = False
    for path in sys.argv[2:]:
        text = open(path, encoding="utf-8").read()
        if path.endswith(".c"):
            found = set(re.findall(r'\bexecl?p\("([^"]+)"', text))
        else:
            found = set(commands_of(text)) - functions
        # sudo is used only where it is there already.
        for name in sorted(found - known - {"sudo"}):
            print(f"{path}: starts '{name}', which no package of the list provides")
            bad = True
    return bad


sys.exit(main())
