# SPDX-License-Identifier: Apache-2.0
#
# documents.py ROOT DMBENCH BUILD NOT_RUN: every command line of the documents works, and every path that they name exists.
# documents.py --self-test: proves on a made document that a wrong command and a missing path are found.
#
# Commands are the lines of indented and fenced blocks that begin with a program (STARTS, below), the same in `code`, and
# the examples of each command's --help. Lines with placeholders (FILE, NAME, ...) are read but not run: their options
# must be in the command's --help. The others are run at a small size, in the current folder, where `before`, `after`,
# `base.json` and the like are made first. `cmake` and `ctest` lines are checked against the presets, and against the
# labels and names of the tests of BUILD. NOT_RUN lists what cannot be run here, with the reason; a line of it that fits
# no command is an error.
import fnmatch
import json
import os
import re
import shlex
import struct
import subprocess
import sys
import tempfile

STARTS = re.compile(
    r"^(\./\S+|(build/\S+/)?dmbench|cmake|ctest|mpirun|srun|sbatch|git|scripts/\S+\.sh|tests/\S+\.sh|build/\S+|"
    r"head(?= -)|diff(?= \S+/)|echo(?= \d)|export|numactl|ib_\w+)(\s|$)"
)
PLACEHOLDER = re.compile(r"^[A-Z][A-Z_]*$|^<.*>$|^\.\.\.$|=[A-Z_]+$|^[A-Z_]+/|/[A-Z_]+\.json$|^\[")
TOPS = ("common", "transport", "indexes", "workloads", "harness", "check", "plots", "results", "tests", "docs", "scripts", ".ci")
# Without a folder only names of sources are paths: results and profiles of examples need not exist.
ENDINGS = (".c", ".h", ".def", ".sh", ".py", ".md", ".gp")
# Options that say how large a run is, with the size to run here.
SIZES = {
    "run": {"--keys": 20000, "--ops": 5000},
    "check": {"--seeds": 5},
    "train": {"--keys": 20000, "--models": 100},
    "sweep": {"--repeat": 2},
}
# Statuses that are an answer: 3 is a finding, a verdict or a condition that holds.
ANSWERS = {"check": (0, 3), "compare": (0, 3), "validate": (0, 3)}


def number(text):
    found = re.match(r"^(\d+)([KMGT]?)$", text)
    return int(found.group(1)) * 1000 ** "_KMGT".index(found.group(2) or "_") if found else 0


class Documents:
    def __init__(self, root, dmbench, build, not_run):
        self.root, self.dmbench, self.build = root, dmbench, build
        self.complaints = []
        self.not_run = []
        for line in open(not_run, encoding="utf-8"):
            if line.strip() and not line.startswith("#"):
                pattern, reason = line.strip().split(" | ")
                self.not_run.append([pattern, reason, 0])
        self.helps = {}
        self.done = set()
        self.counts = {"run": 0, "read": 0, "not run": 0, "paths": 0}
        listed = subprocess.run(["git", "ls-files"], cwd=root, capture_output=True, text=True)
        if listed.returncode == 0:
            self.files = listed.stdout.split("\n")
        else:
            self.files = [os.path.relpath(os.path.join(where, name), root) for where, _, names in os.walk(root) for name in names]
        folders = {os.path.dirname(path) for path in self.files}
        self.folders = {"/".join(path.split("/")[:at]) for path in folders for at in range(1, 9)}

    def complain(self, where, text):
        self.complaints.append(f"{where}: {text}")

    # ---- reading documents --------------------------------------------------------------------------------------------

    def commands_of(self, path):
        """(where, command) of a document, with continued lines joined."""
        text = open(os.path.join(self.root, path), encoding="utf-8").read()
        fenced, held, code = False, "", ""
        for at, line in enumerate(text.split("\n"), 1):
            if line.startswith("```"):
                fenced = not fenced
                code = line[3:].strip() if fenced else ""
                continue
            if not (fenced and code in ("", "sh") or not fenced and line.startswith("    ")):
                continue
            line = held + line.strip()
            held = ""
            if line.endswith("\\"):
                held = line[:-1]
                continue
            for part in parts_of(line):
                if STARTS.match(part):
                    yield f"{path}:{at}", part
        for found in re.finditer(r"`([^`\n]+)`", text):
            part = found.group(1)
            # `dmbench list` and `dmbench figure --slurm` mention a command or an option, and are no line to type.
            if STARTS.match(part) and len(part.split()) > 2 and not part.split()[-1].startswith("--"):
                yield f"{path}:{text.count(chr(10), 0, found.start()) + 1}", part

    def commands_of_help(self):
        for name in self.command_names():
            for line in self.help_of(name).split("\n"):
                if re.match(r"^  dmbench ", line):
                    for part in parts_of(line.strip()):
                        if STARTS.match(part):
                            yield f"dmbench {name} --help", part

    def command_names(self):
        if not hasattr(self, "names"):
            text = subprocess.run([self.dmbench, "--help"], capture_output=True, text=True).stdout
            self.names = re.findall(r"(?m)^  (?:dmbench )?([a-z]+) ", text)
        return self.names

    def help_of(self, name):
        if name not in self.helps:
            words = [self.dmbench] + ([name] if name else []) + ["--help"]
            self.helps[name] = subprocess.run(words, capture_output=True, text=True).stdout
        return self.helps[name]

    # ---- commands -----------------------------------------------------------------------------------------------------

    def check_command(self, where, command):
        if command in self.done:
            return
        self.done.add(command)
        for row in self.not_run:
            if fnmatch.fnmatchcase(command, row[0]):
                row[2] += 1
                self.counts["not run"] += 1
                self.read_dmbench(where, command)
                return
        words = shlex.split(command)
        program = os.path.basename(words[0])
        if program == "dmbench":
            self.check_dmbench(where, command, words)
        elif program in ("cmake", "ctest"):
            self.check_build(where, command, words)
        elif words[0].startswith(("./", "scripts/", "tests/")):
            self.check_script(where, command, words)
        elif program == "diff" and any(PLACEHOLDER.search(word) for word in words):
            self.counts["read"] += 1
        else:
            self.complain(where, f"'{command}': this test cannot run it, and its list of such commands lacks it")

    def read_dmbench(self, where, command):
        """The options of the dmbench command in this line are in its --help."""
        found = re.search(r"(?:^|[ /])dmbench (.*)$", command)
        if not found:
            return
        words = found.group(1).split()
        if words[0].startswith("--") or PLACEHOLDER.search(words[0]):
            return
        if words[0] not in self.command_names():
            self.complain(where, f"'{command}': there is no command '{words[0]}'")
            return
        known = self.help_of(words[0])
        if words[0] != "run" and re.search(r"[Oo]ptions of\s+`dmbench run`", known):
            known += self.help_of("run")
        for word in words[1:]:
            option = word.split("=")[0]
            if option.startswith("--") and option != "--help" and not re.search(rf"(?m)(^|\s){option}\b", known):
                self.complain(where, f"'{command}': {option} is not in dmbench {words[0]} --help")

    def check_dmbench(self, where, command, words):
        self.read_dmbench(where, command)
        if any(PLACEHOLDER.search(word) for word in words[1:]):
            self.counts["read"] += 1
            return
        words, answers = smaller(words[1:])
        done = subprocess.run([self.dmbench] + words, capture_output=True, text=True)
        self.counts["run"] += 1
        if done.returncode not in answers:
            ran = " ".join(["dmbench"] + words)
            self.complain(where, f"'{command}', run as '{ran}': status {done.returncode}: {done.stderr.strip()[-300:]}")

    def check_build(self, where, command, words):
        presets = json.load(open(os.path.join(self.root, "CMakePresets.json"), encoding="utf-8"))
        program = words[0]
        kind = "testPresets" if program == "ctest" else "buildPresets" if "--build" in words else "configurePresets"
        folders = [preset["binaryDir"].replace("${sourceDir}/", "") for preset in presets["configurePresets"]]
        for option, value in zip(words, words[1:] + [""]):
            if option == "--preset" and value not in [preset["name"] for preset in presets[kind]]:
                self.complain(where, f"'{command}': CMakePresets.json has no '{value}' among its {kind}")
            if option in ("--test-dir", "--build") and not value.startswith("-") and value not in folders:
                self.complain(where, f"'{command}': no preset builds in {value}")
            if option == "--target" and value not in self.targets():
                self.complain(where, f"'{command}': there is no target '{value}'")
        if program == "ctest":
            self.check_tests(where, command, words)
        self.counts["read"] += 1

    def check_tests(self, where, command, words):
        """The tests that a ctest line asks for exist."""
        asked = [at for at in range(1, len(words) - 1) if words[at] in ("-L", "-R")]
        for at in asked:
            if PLACEHOLDER.search(words[at + 1]):
                continue
            names = " ".join(test["name"] + "\n" for test in self.tests())
            labels = {label for test in self.tests() for label in labels_of(test)} | {"fuzz", "rxe", "long"}
            found = labels if words[at] == "-L" else names.split()
            if not any(re.search(words[at + 1], one) for one in found):
                self.complain(where, f"'{command}': no test fits {words[at]} {words[at + 1]}")

    def tests(self):
        if not hasattr(self, "listed"):
            done = subprocess.run(["ctest", "--test-dir", self.build, "--show-only=json-v1"], capture_output=True, text=True)
            self.listed = json.loads(done.stdout)["tests"]
        return self.listed

    def targets(self):
        done = subprocess.run(["cmake", "--build", self.build, "--target", "help"], capture_output=True, text=True)
        return set(re.findall(r"[\w.+-]+", done.stdout))

    def check_script(self, where, command, words):
        path = os.path.normpath(words[0])
        full = os.path.join(self.root, path)
        if not os.access(full, os.X_OK):
            self.complain(where, f"'{command}': there is no {path}")
            return
        if path == "run_all.sh":
            # Options are read in order, so all options before --help have been checked when it ends.
            done = subprocess.run([full] + words[1:] + ["--help"], capture_output=True, text=True)
        elif path == "run_tests.sh":
            self.check_tests(where, command, words)
            done = subprocess.run([full, "--help"], capture_output=True, text=True)
        elif path == "scripts/setup.sh":
            done = subprocess.run([full, "--list"] + words[1:], capture_output=True, text=True)
        else:
            done = subprocess.run(["sh", "-n", full], capture_output=True, text=True)
        self.counts["run"] += 1
        if done.returncode != 0:
            self.complain(where, f"'{command}': {done.stderr.strip()}")

    # ---- paths --------------------------------------------------------------------------------------------------------

    def check_paths(self, path):
        text = open(os.path.join(self.root, path), encoding="utf-8").read()
        here = os.path.dirname(path)
        for found in re.finditer(r"\]\(([^)\s]+)\)", text):
            link = found.group(1)
            where = f"{path}:{text.count(chr(10), 0, found.start()) + 1}"
            if re.match(r"\w+:", link):
                continue
            target, _, anchor = link.partition("#")
            target = os.path.normpath(os.path.join(here, target)) if target else path
            self.counts["paths"] += 1
            if not os.path.exists(os.path.join(self.root, target)):
                self.complain(where, f"links to {link}, which does not exist")
            elif anchor and anchor not in anchors_of(os.path.join(self.root, target)):
                self.complain(where, f"links to {link}, and {target} has no such heading")
        for found in re.finditer(r"`([^`\n]+)`", text):
            where = f"{path}:{text.count(chr(10), 0, found.start()) + 1}"
            for word in found.group(1).split():
                self.check_path(where, here, word.rstrip(",;:."))

    def check_listing(self, path):
        """Indented lines that begin with a path, and the counts of lines that they give, which may be 10 % off."""
        text = open(os.path.join(self.root, path), encoding="utf-8").read()
        for at, line in enumerate(text.split("\n"), 1):
            found = re.match(r"^    ((?:%s)/[\w./-]*)(?:  +(\d+) lines)?(?: |$)" % "|".join(TOPS), line)
            if not found or found.group(1).startswith("results/"):
                continue
            name = found.group(1).rstrip("/")
            self.counts["paths"] += 1
            if not self.is_there(name):
                self.complain(f"{path}:{at}", f"lists {name}, which does not exist")
            elif found.group(2):
                lines = open(os.path.join(self.root, name), encoding="utf-8").read().count("\n")
                if abs(lines - int(found.group(2))) > max(5, lines // 10):
                    self.complain(f"{path}:{at}", f"gives {name} {found.group(2)} lines; it has {lines}")

    def check_folders(self, path):
        """Every folder of sources is in this document."""
        text = open(os.path.join(self.root, path), encoding="utf-8").read()
        for folder in sorted({os.path.dirname(name) for name in self.files if name.endswith(".c")}):
            folder = "/".join(folder.split("/")[:2])
            if folder not in text:
                self.complain(path, f"does not mention {folder}/")

    def check_path(self, where, here, word):
        if not re.match(r"^[\w.{},*-]+(/[\w.{},*-]+)*/?$", word) or "..." in word:
            return
        top = word.split("/")[0]
        is_path = "/" in word and top in TOPS
        if not is_path and not word.endswith(ENDINGS):
            return
        if top in ("results", "build") or re.match(r"^[A-Z_]+\.", word) or re.match(r"^[A-Z]+/|.*/[A-Z]+(/|\.|$)", word):
            return
        if re.search(r"(^|[/_.])(NAME|ID|HASH|OUT)([/_.]|$)", word):
            return
        self.counts["paths"] += 1
        for name in braces(word.rstrip("/")):
            beside = os.path.normpath(os.path.join(here, name))
            if any(self.is_there(one) for one in (name, beside)):
                continue
            if not is_path and self.is_there("*/" + name):
                continue
            self.complain(where, f"names {name}, which does not exist")

    def is_there(self, name):
        if "*" not in name:
            return name in self.folders or os.path.exists(os.path.join(self.root, name))
        return bool(fnmatch.filter(self.files, name) or fnmatch.filter(self.folders, name))


def parts_of(line):
    """The commands of a line, without what explains them: " # ...", or words behind three blanks or more."""
    line = re.sub(r"\s+#\s.*$|^#.*$", "", line)
    line = re.split(r"\s{3,}", line)[0]
    return [part.strip() for part in re.split(r" && |; | \| ", line) if part.strip()]


def braces(word):
    found = re.search(r"\{([^{}]*)\}", word)
    if not found:
        return [word]
    return [name for one in found.group(1).split(",") for name in braces(word[: found.start()] + one + word[found.end() :])]


def labels_of(test):
    return [label for one in test.get("properties", []) if one["name"] == "LABELS" for label in one["value"]]


def anchors_of(path):
    text = open(path, encoding="utf-8").read()
    return {re.sub(r"[^\w -]", "", head.strip().lower()).replace(" ", "-") for head in re.findall(r"(?m)^#+ (.*)$", text)}


def smaller(words):
    """The words of a dmbench command at a small size, and the statuses that mean that it worked."""
    name = words[0]
    answers = ANSWERS.get(name, (0,))
    if "--help" in words or "--list" in words and name == "figure":
        return words, answers
    redirect = [at for at, word in enumerate(words) if word.startswith(">")]
    words = words[: redirect[0]] if redirect else words
    if name == "figure" or name == "claims" and "--run" in words or name == "sweep" and "--sshloginfile" in words:
        return words if "--slurm" in words else words + ["--dry-run"], answers
    if name == "map" and "--x" not in words and not {"--list", "--dry-run"} & set(words):
        return words + ["--dry-run"], answers  # a map that has a name takes minutes; map_test.sh runs a small one
    if name == "validate" and "--end-to-end" in words:
        return words + ["--dry-run"], answers
    if name == "validate":
        alone = {"--only", "--cpu", "--fit", "--profile", "--out"} & set(words)
        return words if alone else words + ["--only", "V1"], answers
    if name == "check" and "--time" in words:
        at = words.index("--time")
        words = words[:at] + words[at + 2 :]
    if name == "check" and {"--history", "--replay"} & set(words):
        return words, answers
    is_spec = len(words) > 1 and words[1].endswith(".json")
    for option, size in SIZES.get(name, {}).items():
        if option in words:
            at = words.index(option) + 1
            words = words[:at] + [str(min(number(words[at]), size))] + words[at + 1 :]
        elif not is_spec and option in ("--keys", "--ops", "--seeds"):
            words = words + [option, str(size)]
    return words, answers


def prepare(dmbench):
    """What commands read: a spec, sets of results, a property file, a history; made small."""
    small = ["--keys", "2000", "--ops", "500", "--clients", "4"]

    def run(*words):
        done = subprocess.run([dmbench, *words], capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"cannot prepare: dmbench {' '.join(words)}: {done.stderr}")

    run("run", *small, "--json", "--out", "base.json")
    for folder in ("before", "after"):
        run("sweep", "base.json", "--repeat", "2", "--out", folder)
    texts = {
        "machines": ":\n",
        "my.properties": "recordcount=1000\noperationcount=1000\nreadproportion=1\nrequestdistribution=zipfian\n",
        "lab.json": '{"schema_version": 1, "inherits": "cx6-100g", "parameters": {}}\n',
        "my-nic.json": '{"schema_version": 1, "inherits": "cx5-100g", "parameters": {}}\n',
        "cluster8.csv": "".join(f"{at // 9},key{at * 7 % 50},5,100,{at % 3},{('get', 'get', 'set')[at % 3]},0\n" for at in range(900)),
    }
    for name, text in texts.items():
        with open(name, "w", encoding="utf-8") as out:
            out.write(text)
    os.makedirs("results", exist_ok=True)
    with open("books_200M_uint64", "wb") as out:
        out.write(struct.pack("<1001Q", 1000, *(at * at + 7 for at in range(1000))))


def documents(root, files):
    fixed = ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"]
    return fixed + sorted(path for path in files if path.endswith(".md") and path not in fixed and not path.startswith("tests/"))


def self_test():
    with tempfile.TemporaryDirectory() as root:
        def write(path, text, mode=0o644):
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as out:
                out.write(text)
            os.chmod(full, mode)
            return full

        fake = '#!/bin/sh\ncase "$*" in --help) echo "  run  runs" ;; *--help) echo "  --keys N --ops N --set N" ;; *bad*) exit 2 ;; esac\n'
        dmbench = write("bin/dmbench", fake, 0o755)
        write("CMakePresets.json", '{"configurePresets": [{"name": "dev", "binaryDir": "${sourceDir}/build/dev"}], "buildPresets": [], "testPresets": []}')
        write("docs/there.md", "# A heading\n")
        write("run_all.sh", '#!/bin/sh\n[ "$1" != --wrong ]\n', 0o755)
        write("good.md", "    dmbench run --keys 9M   # a remark\n    cmake --preset dev && ./run_all.sh\n`docs/there.md` [x](docs/there.md#a-heading)\n    docs/there.md   1 lines   what it has\n    mpirun dmbench run --keys 1\n")
        bad = [
            "    dmbench run --set bad=1",
            "    dmbench run --missing FILE",
            "    dmbench \\\n        walk",
            "```\ncmake --preset none\n```",
            "    cmake --build --preset dev",
            "    ./run_none.sh",
            "    ./run_all.sh --wrong",
            "    mpirun dmbench run --missing 1",
            "    git clone there",
            "`docs/none.md`",
            "`dmbench run --missing 1`",
            "[x](docs/none.md)",
            "[x](docs/there.md#none)",
            "    docs/none.c   what it has",
            "    docs/there.md   12 lines   what it has",
        ]
        for at, text in enumerate(bad):
            write(f"bad{at:02}.md", text + "\n")
        write("not_run", "mpirun * | needs hosts\nsrun * | stale\n")
        files = sorted(path for path in os.listdir(root) if path.endswith(".md"))
        read = Documents(root, dmbench, root, os.path.join(root, "not_run"))
        judge(read, files)
        read.files.append("common/late.c")
        read.check_folders("good.md")
        folders = [text for text in read.complaints if "does not mention common" in text]
        read.complaints = [text for text in read.complaints if text not in folders]
    found = "\n".join(read.complaints)
    failures = [f"not found: {text}" for at, text in enumerate(bad) if f"bad{at:02}.md:" not in found]
    failures += [] if folders else ["a folder that is not mentioned is not found"]
    failures += ["a good document is refused: " + found] if "good.md" in found else []
    failures += ["a stale line of the list is not found"] if "srun" not in found else []
    failures += [] if read.counts["run"] >= 4 else [f"only {read.counts['run']} commands were run"]
    print("\n".join(failures))
    return bool(failures)


def judge(read, paths):
    """Documents side by side, the commands of one in their order."""

    def one(path):
        for where, command in list(read.commands_of(path)):
            read.check_command(where, command)
        read.check_paths(path)
        read.check_listing(path)

    for path in paths:
        one(path)
    for where, command in read.commands_of_help():
        read.check_command(where, command)
    for pattern, _, count in read.not_run:
        if count == 0:
            read.complain("the list of commands that are not run", f"'{pattern}' fits no command")


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    read = Documents(*sys.argv[1:5])
    prepare(read.dmbench)
    judge(read, documents(read.root, read.files))
    read.check_folders("ARCHITECTURE.md")
    print("\n".join(read.complaints))
    print(", ".join(f"{count} {what}" for what, count in read.counts.items()))
    return bool(read.complaints)


sys.exit(main())
