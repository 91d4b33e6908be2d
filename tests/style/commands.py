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


def strip_quotes(text):
    text = re.sub(r"\\\n", " ", text)
    text = re.sub(r"\\.", "_", text)
    text = re.sub(r"(^|\s)#[^\n]*", r"\1", text)
    # Single-quoted text is another language; in double quotes only command substitutions are shell.
    text = re.sub(r"'[^']*'", "_", text)
    text = re.sub(r"\$\{[^}]*\}", "_", text)
    text = re.sub(r"\$\(\([^()]*\)\)", "_", text)

    def inner(found):
        commands = re.findall(r"\$\(((?:[^()]|\([^()]*\))*)\)", found.group(0))
        return "_ " + " ".join("; " + command + " ;_" for command in commands)

    return re.sub(r'"[^"]*"', inner, text)


def commands_of(text):
    text = strip_quotes(without_documents(text))
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
