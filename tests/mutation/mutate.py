# SPDX-License-Identifier: Apache-2.0
#
# Mistakes planted in the sources, one at a time, to see whether the conformance tests and `dmbench check` notice them.
# scripts/mutate.sh runs this file; `--help` has the options.
#
# tests/mutation/NAME.json holds the mutants of the index NAME, or of what several indexes share:
#
#   {"indexes": ["sherman"], "tests": ["conformance/sherman_test"], "mutants": [{...}, ...]}
#
# The first two are defaults of the mutants below; without them the index NAME is checked, and the tests are
# tests/unit/indexes/INDEX*_test.c and tests/conformance/INDEX*_test.c. A mutant has
#
#   id          unique; begins with the name of its file
#   file        which source it changes
#   old, new    the text that is replaced (it occurs exactly once in the file), and what replaces it
#   breaks      what goes wrong, in a sentence
#   operator    optional: the rule that made it, if a rule did
#   indexes     optional: the indexes that are checked
#   tests       optional: the tests, as their names in ctest
#   args        optional: further options of `dmbench check`
#   equivalent  optional: why no run can differ
#   survives    optional: why the tests and `check` do not notice it today
import argparse
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import queue
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

MEMBERS = {"id", "file", "old", "new", "breaks", "operator", "indexes", "tests", "args", "equivalent", "survives"}
NEEDED = {"id", "file", "old", "new", "breaks"}
BLOCKS = [100, 200, 400, 800, 1500, 3000]  # seeds; the last size is repeated
SOON_SEEDS = 1500
LATE_TEST = "conformance/late_test"
VERB_TEST = "conformance/late_verb_test"  # of all indexes: ten seconds, and less than check takes
LAST_TEST = "conformance/index_conformance_test"  # of all indexes: the slowest, for what nothing else has killed


class Refused(Exception):
    pass


class Stopped(Exception):
    """The campaign was interrupted."""


# ---- the data ----------------------------------------------------------------------------------------------------


def indexes_of(root):
    """The names in indexes.def."""
    text = (root / "indexes/indexes.def").read_text(encoding="utf-8")
    return re.findall(r"(?m)^IX_INDEX\((\w+)", text)


def tests_of(root, indexes):
    """The unit tests, which are quick, the conformance tests of these indexes, and one of all indexes that takes seconds."""
    folders = ["unit/indexes", "conformance"]
    found = [
        f"{folder}/{path.stem}"
        for folder in folders
        for index in indexes
        for path in sorted((root / "tests" / folder).glob(f"{index}_*test.c"))
    ]
    return found + [LATE_TEST] if (root / f"tests/{LATE_TEST}.c").is_file() else found


def target_of(test):
    """The program of a test, by its name in ctest: tests/CMakeLists.txt names it so."""
    return test.replace("/", "_")


def mutant_read(root, group, data, entry, ids):
    name = f"tests/mutation/{group}.json: {entry.get('id', 'a mutant without id')}"
    missing, unknown = NEEDED - set(entry), set(entry) - MEMBERS
    if missing or unknown:
        raise Refused(f"{name}: " + ("lacks " + ", ".join(sorted(missing)) if missing else "unknown " + ", ".join(sorted(unknown))))
    if not entry["id"].startswith(group + "-") or entry["id"] in ids:
        raise Refused(f"{name}: an id begins with '{group}-' and is unique")
    path = root / entry["file"]
    if not path.is_file():
        raise Refused(f"{name}: there is no file {entry['file']}")
    found = path.read_text(encoding="utf-8").count(entry["old"]) if entry["old"] else 0
    if found != 1:
        raise Refused(f"{name}: the text to replace occurs {found} times in {entry['file']}, not once: {entry['old'][:60]!r}")
    if entry["old"] == entry["new"]:
        raise Refused(f"{name}: the new text is the old one")
    if "equivalent" in entry and "survives" in entry:
        raise Refused(f"{name}: either equivalent or survives")
    known = indexes_of(root)
    indexes = entry.get("indexes", data.get("indexes", [group]))
    for index in indexes:
        if index not in known:
            raise Refused(f"{name}: there is no index {index}; a file of shared mutants names its indexes")
    tests = entry.get("tests", data.get("tests", tests_of(root, indexes)))
    for test in tests:
        if not (root / f"tests/{test}.c").is_file():
            raise Refused(f"{name}: there is no test {test}")
    return {**entry, "group": group, "indexes": indexes, "tests": tests, "args": entry.get("args", data.get("args", []))}


def mutants_read(root, folder=None):
    mutants, ids = [], set()
    for path in sorted((folder or root / "tests/mutation").glob("*.json")):
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise Refused(f"tests/mutation/{path.name}: {error}") from error
        for entry in data["mutants"]:
            mutants.append(mutant_read(root, path.stem, data, entry, ids))
            ids.add(entry["id"])
    return mutants


def key_of(mutant):
    """Changes with anything that may change the outcome, except the sources."""
    text = json.dumps([mutant[name] for name in ("file", "old", "new", "indexes", "tests", "args")])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---- commands that run -------------------------------------------------------------------------------------------


class Running:
    """The process groups of the commands that run. An interrupt of this program does not reach them."""

    def __init__(self):
        self.lock, self.groups, self.stopped = threading.Lock(), set(), False

    def start(self, command, **options):
        with self.lock:
            if self.stopped:
                raise Stopped
            child = subprocess.Popen(command, start_new_session=True, **options)
            self.groups.add(child.pid)
            return child

    def end(self, child):
        with self.lock:
            self.groups.discard(child.pid)

    def stop(self):
        with self.lock:
            self.stopped = True
            for group in self.groups:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)


running = Running()


# ---- copies and builds -------------------------------------------------------------------------------------------


def sources_of(root):
    """The project's files; in a clone, those that git ignores left out. A tarball may be within another repository."""
    try:
        if not (root / ".git").exists():
            raise OSError
        out = subprocess.run(
            ["git", "-C", str(root), "ls-files", "-coz", "--exclude-standard"], capture_output=True, check=True
        ).stdout.decode()
        return sorted(name for name in set(out.split("\0")) if name and (root / name).is_file())
    except (OSError, subprocess.CalledProcessError):
        skipped = {".git", "build", "results"}
        return sorted(
            str(path.relative_to(root))
            for path in root.rglob("*")
            if path.is_file() and path.relative_to(root).parts[0] not in skipped
        )


def sources_hash(root, names):
    total = hashlib.sha256()
    for name in names:
        if name.startswith("tests/mutation/"):
            continue
        if name.endswith((".c", ".h", ".def", ".txt")) or name.startswith("transport/profiles/"):
            total.update(name.encode() + b"\0" + (root / name).read_bytes())
    return total.hexdigest()[:16]


class Copy:
    """A copy of the sources with a build of its own, in which one mutant at a time is built."""

    def __init__(self, root, folder, names, parallel):
        self.root, self.sources, self.build, self.parallel = root, folder / "sources", folder / "build", parallel
        for name in names:
            self.put(name, (root / name).read_bytes())
        for path in [path for path in self.sources.rglob("*") if path.is_file()]:
            if str(path.relative_to(self.sources)) not in set(names):
                path.unlink()
        options = ["-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_C_FLAGS_DEBUG=-O1", "-DDM_WERROR=OFF"]
        if shutil.which("ninja"):
            options.append("-GNinja")
        if shutil.which("ccache"):
            options.append("-DCMAKE_C_COMPILER_LAUNCHER=ccache")
        self.run(["cmake", "-S", str(self.sources), "-B", str(self.build)] + options)

    def put(self, name, content):
        path = self.sources / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            shutil.copymode(self.root / name, path)

    def run(self, command):
        child = running.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out, _ = child.communicate()
        running.end(child)
        if child.returncode != 0:
            raise Refused(out.decode(errors="replace")[-1500:])

    def make(self, tests):
        targets = ["dmbench"] + [target_of(test) for test in tests]
        self.run(["cmake", "--build", str(self.build), "--parallel", str(self.parallel), "--target"] + targets)

    def change(self, mutant):
        text = (self.root / mutant["file"]).read_text(encoding="utf-8")
        self.put(mutant["file"], text.replace(mutant["old"], mutant["new"]).encode())

    def restore(self, mutant):
        self.put(mutant["file"], (self.root / mutant["file"]).read_bytes())


# ---- one mutant --------------------------------------------------------------------------------------------------


def limited(command, cpu_s):
    """Runs a command with at most so much processor time: (status, output, seconds used). The status of a signal is negative."""
    limit = max(1, int(cpu_s))

    def prepare():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # A mutant that allocates without end must not take the machine's memory. Address space is not limited: the
        # transport verbs reserves 64 GB of it, without access.
        resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))

    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryFile() as out:
        child = running.start(command, stdout=out, stderr=out, preexec_fn=prepare, cwd=work)
        # Host time catches a mutant that waits without using the processor.
        timer = threading.Timer(20 * limit, os.killpg, (child.pid, signal.SIGKILL))
        timer.start()
        try:
            _, status, usage = os.wait4(child.pid, 0)
            running.end(child)
        finally:
            timer.cancel()
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return child.returncode, out.read().decode(errors="replace"), usage.ru_utime + usage.ru_stime


def death(status):
    name = signal.Signals(-status).name
    return "time" if name in ("SIGXCPU", "SIGKILL") else "crash"


def test_run(copy, test, cpu_s):
    """(how the test failed or None, seconds used)."""
    status, out, seconds = limited([str(copy.build / "tests" / target_of(test))], cpu_s)
    if status in (0, 77):
        return None, seconds
    failed = re.findall(r"\[  FAILED  \] (\w+)", out)
    return death(status) if status < 0 else failed[0] if failed else f"status {status}", seconds


def allowed_s(budget, taken, test):
    """Processor time for a test with a mutant. On a slow host a test may need more than the budget without one."""
    return max(budget.test_s, 3 * taken.get(test, 0.0))


def check_run(copy, index, args, seeds, cpu_s):
    """(how check noticed it or None, how many seeds it took or were run)."""
    done, block, used_s = 0, 0, 0.0
    while done < seeds and used_s < cpu_s:
        count = min(BLOCKS[min(block, len(BLOCKS) - 1)], seeds - done)
        command = [str(copy.build / "dmbench"), "check", "--index", index, "--seeds", str(count), "--first-seed", str(done + 1)]
        command += ["--coverage", "off", "--shrink-runs", "0", "--seed-time", "20s", "--json"] + args
        status, out, seconds = limited(command, cpu_s + 30)
        used_s += seconds
        if status != 0:
            return check_finding(status, out, done + count)
        done += count
        block += 1
    return None, done


def worlds_run(copy, index, cpu_s):
    """The kept world of the index that is not right any more, or None. check_test runs them all."""
    for path in sorted((copy.sources / "tests/worlds").glob(f"{index}_*.json")):
        status, _, _ = limited([str(copy.build / "dmbench"), "check", "--world", str(path), "--shrink-runs", "0"], cpu_s)
        if status != 0:
            return death(status) if status < 0 else path.stem
    return None


def check_finding(status, out, most):
    if status < 0:
        return death(status), most
    try:
        found = json.loads(out[out.index("{") :])["findings"][0]["finding"]
        return found["fault"], found["seed"]
    except (ValueError, KeyError, IndexError, TypeError):
        # The child of a campaign crashed, or the world could not be run.
        seed = re.search(r"seed (\d+)", out)
        return "crash" if "died" in out else "cannot run", int(seed.group(1)) if seed else most


def mutant_judge(copy, mutant, budget, taken):
    """The outcome of one mutant: state killed, survived or refused, by what, how, after how many seeds. `taken` has the
    seconds of each test without a mutant."""
    copy.change(mutant)
    try:
        tests = [*mutant["tests"], VERB_TEST]
        try:
            copy.make(tests)
        except Refused as error:
            return {"state": "refused", "how": str(error)[-600:]}
        for test in tests:
            how, _ = test_run(copy, test, allowed_s(budget, taken, test))
            if how:
                return {"state": "killed", "by": test.split("/")[-1], "how": how}
        for index in mutant["indexes"]:
            how = worlds_run(copy, index, budget.test_s)
            if how:
                return {"state": "killed", "by": "check_test", "how": how}
        seeds = 0
        for index in mutant["indexes"]:
            how, count = check_run(copy, index, mutant["args"], budget.seeds, budget.cpu_s)
            seeds += count
            if how:
                return {"state": "killed", "by": "check", "how": how, "index": index, "seeds": count}
        if LAST_TEST not in mutant["tests"] and not budget.no_last:
            copy.make([LAST_TEST])
            how, _ = test_run(copy, LAST_TEST, max(4 * budget.test_s, allowed_s(budget, taken, LAST_TEST)))
            if how:
                return {"state": "killed", "by": LAST_TEST.split("/")[1], "how": how}
        return {"state": "survived", "seeds": seeds}
    finally:
        copy.restore(mutant)


def baseline_judge(copy, mutants, budget):
    """Without a mutant every test passes; otherwise a failure would prove nothing. Returns the seconds of each test."""
    taken = {}
    tests = sorted({VERB_TEST} | {test for mutant in mutants for test in mutant["tests"]})
    copy.make(tests)
    for test in tests:
        how, taken[test] = test_run(copy, test, 4 * budget.test_s)
        if how:
            raise Refused(f"{test} fails without a mutant: {how}")
    for index in sorted({index for mutant in mutants for index in mutant["indexes"]}):
        how, count = check_run(copy, index, [], min(budget.seeds, 300), budget.cpu_s)
        if how:
            raise Refused(f"check --index {index} fails without a mutant: {how} within {count} seeds")
    return taken


# ---- many --------------------------------------------------------------------------------------------------------


def kept_read(path, sources):
    kept = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["sources"] == sources:
                kept[row["key"]] = row
    return kept


def campaign(root, mutants, budget):
    work = root / "build/mutation"
    work.mkdir(parents=True, exist_ok=True)
    names = sources_of(root)
    sources = sources_hash(root, names)
    outcomes_path = work / "outcomes.jsonl"
    kept = kept_read(outcomes_path, sources) if budget.resume else {}
    rows = {mutant["id"]: kept[key_of(mutant)] for mutant in mutants if key_of(mutant) in kept}
    todo = [mutant for mutant in mutants if mutant["id"] not in rows]
    copies, lock = queue.Queue(), threading.Lock()
    for i in range(min(budget.jobs, len(todo))):
        copies.put(Copy(root, work / str(i), names, max(1, (os.cpu_count() or 1) // budget.jobs)))
    taken = {}
    if todo and not budget.no_baseline:
        copy = copies.get()
        taken = baseline_judge(copy, todo, budget)
        copies.put(copy)

    def one(mutant):
        copy = copies.get()
        try:
            row = mutant_judge(copy, mutant, budget, taken)
        finally:
            copies.put(copy)
        if running.stopped:
            raise Stopped  # what was killed says nothing of the mutant
        row.update(id=mutant["id"], key=key_of(mutant), sources=sources)
        with lock:
            rows[mutant["id"]] = row
            print(line_of(mutant, row), flush=True)
            with open(outcomes_path, "a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    with concurrent.futures.ThreadPoolExecutor(max(1, budget.jobs)) as pool:
        try:
            for future in [pool.submit(one, mutant) for mutant in todo]:
                future.result()
        except KeyboardInterrupt:
            running.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return rows


def line_of(mutant, row):
    if row["state"] == "killed":
        after = f" after {row['seeds']} seeds" if "seeds" in row else ""
        return f"killed    {mutant['id']}: {row['by']}, {row['how']}{after}"
    if row["state"] == "refused":
        return f"refused   {mutant['id']}: does not compile: {row['how'].strip().splitlines()[-1]}"
    why = "equivalent: " + mutant["equivalent"] if "equivalent" in mutant else mutant.get("survives", "NOT KNOWN TO SURVIVE")
    return f"survived  {mutant['id']}: {row['seeds']} seeds; {why}"


def table(mutants, rows):
    """Two tables: by source, and by what noticed the mistakes."""
    head = "| sources | mutants | by operators | run | equivalent | killed | by tests | by `check` | median seed | survived |"
    out = [head, "|---" * 10 + "|"]
    groups = sorted({mutant["group"] for mutant in mutants})
    for group in groups + ["all"]:
        mine = [mutant for mutant in mutants if group in (mutant["group"], "all")]
        run = [mutant for mutant in mine if mutant["id"] in rows]
        killed = [rows[mutant["id"]] for mutant in run if rows[mutant["id"]]["state"] == "killed"]
        by_check = [row["seeds"] for row in killed if row["by"] == "check"]
        survived = [mutant for mutant in run if rows[mutant["id"]]["state"] == "survived"]
        equal = [mutant for mutant in survived if "equivalent" in mutant]
        judged = len(killed) + len(survived) - len(equal)
        share = f" ({100 * len(killed) / judged:.0f} %)" if judged else ""
        cells = [group, len(mine), sum("operator" in mutant for mutant in mine), len(run), len(equal), f"{len(killed)}{share}"]
        cells += [len(killed) - len(by_check), len(by_check)]
        cells += [f"{statistics.median(by_check):.0f}" if by_check else "", len(survived) - len(equal)]
        out.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(out + [""] + causes(mutants, rows))


def causes(mutants, rows):
    """What noticed the mistakes: tests together, and each kind of finding of check."""
    count, seeds = {}, {}
    for mutant in mutants:
        row = rows.get(mutant["id"])
        if row and row["state"] == "killed":
            what = f"`check`: {row['how']}" if row["by"] == "check" else "a test that takes too long" if row["how"] == "time" else "a test"
            count[what] = count.get(what, 0) + 1
            if row["by"] == "check":
                seeds.setdefault(what, []).append(row["seeds"])
    out = ["| noticed by | mutants | after at most, seeds |", "|---|---|---|"]
    for what in sorted(count, key=lambda what: (-count[what], what)):
        out.append(f"| {what} | {count[what]} | {max(seeds[what]) if what in seeds else ''} |")
    return out


# ---- what earlier runs found -------------------------------------------------------------------------------------

OUTCOMES = pathlib.Path(__file__).with_name("outcomes.txt")
BEGIN, END = "<!-- mutants: scripts/mutate.sh --table writes this -->", "<!-- end of mutants -->"


def outcomes_read():
    """The last outcome of each mutant, as outcomes.txt keeps it."""
    rows = {}
    for line in OUTCOMES.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, state, by, how, seeds = line.split("\t")
            rows[name] = {"state": state, "by": by, "how": how, **({"seeds": int(seeds)} if seeds else {})}
    return rows


def outcomes_write(mutants, found):
    """Adds what a run found; mutants that are no more are left out."""
    rows = {**outcomes_read(), **{name: row for name, row in found.items() if row["state"] != "refused"}}
    lines = ["# The last outcome of each mutant: id, state, what noticed it, how, and after how many seeds of check."]
    for name in sorted(rows.keys() & {mutant["id"] for mutant in mutants}):
        row = rows[name]
        cells = [name, row["state"], row.get("by", ""), row.get("how", ""), str(row.get("seeds", ""))]
        lines.append("\t".join(cells))
    OUTCOMES.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table_of_document(root, mutants, write):
    """The tables in docs/methodology.md are those of outcomes.txt; `write` makes them so."""
    path = root / "docs/methodology.md"
    text = path.read_text(encoding="utf-8")
    made = BEGIN + "\n\n" + table(mutants, outcomes_read()) + "\n\n" + END
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise Refused(f"{path}: lacks the marks of the tables of mutants")
    if before + made + after != text:
        if not write:
            raise Refused("docs/methodology.md: its tables are not those of tests/mutation/outcomes.txt; run scripts/mutate.sh --table")
        path.write_text(before + made + after, encoding="utf-8")


def noticed_read():
    """Those that were noticed soon, so that a sample of them can be asked for again."""
    rows = outcomes_read()
    return {name for name, row in rows.items() if row["state"] == "killed" and row.get("seeds", 0) <= SOON_SEEDS}


def chosen(mutants, options):
    if options.only:
        mutants = [mutant for mutant in mutants if any(mutant["id"].startswith(start) for start in options.only)]
        if not mutants:
            raise Refused("no mutant has an id that begins with " + " or ".join(options.only))
    if options.noticed:
        noticed = noticed_read()
        mutants = [mutant for mutant in mutants if mutant["id"] in noticed]
    if options.sample and options.sample < len(mutants):
        mutants = random.Random(options.seed).sample(mutants, options.sample)
    return mutants


def self_test(root):
    """Bad data is refused by name, a test that is slow without a mutant has more time with one, and nothing outlives an
    interrupt."""
    budget, taken = argparse.Namespace(test_s=60), {"slow": 100.0, "quick": 2.0}
    allowed = [allowed_s(budget, taken, test) for test in ("slow", "quick", "not run before")]
    if allowed != [300, 60, 60]:
        raise Refused(f"self-test: processor time {allowed}")
    interrupted = Running()
    child = interrupted.start(["sleep", "1000"])
    interrupted.stop()
    if child.wait() != -signal.SIGKILL:
        raise Refused("self-test: a command outlives an interrupt")
    try:
        interrupted.start(["true"])
        raise Refused("self-test: a command starts after an interrupt")
    except Stopped:
        pass
    entry = {"id": "null-a", "file": "indexes/null/null.c", "old": "Apache-2.0", "new": "", "breaks": "nothing"}
    good = {"indexes": ["null"], "tests": []}
    cases = [
        ({**entry}, None),
        ({**entry, "old": "there is no such text"}, "occurs 0 times"),
        ({**entry, "old": "static"}, "not once"),
        ({**entry, "old": ""}, "occurs 0 times"),
        ({**entry, "new": "Apache-2.0"}, "the new text is the old one"),
        ({**entry, "file": "indexes/null/none.c"}, "there is no file"),
        ({**entry, "id": "other-a"}, "begins with 'null-'"),
        ({**entry, "indexes": ["none"]}, "there is no index none"),
        ({**entry, "tests": ["conformance/none_test"]}, "there is no test"),
        ({**entry, "surprise": 1}, "unknown surprise"),
        ({key: value for key, value in entry.items() if key != "breaks"}, "lacks breaks"),
        ({**entry, "equivalent": "a", "survives": "b"}, "either equivalent or survives"),
    ]
    for case, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "null.json"
            path.write_text(json.dumps({**good, "mutants": [case]}), encoding="utf-8")
            try:
                mutants_read(root, pathlib.Path(folder))
                refusal = None
            except Refused as error:
                refusal = str(error)
        right = refusal is None if expected is None else refusal is not None and expected in refusal and "null.json" in refusal
        if not right:
            raise Refused(f"self-test: {case} gave {refusal!r}, not {expected!r}")


def parse(arguments):
    parser = argparse.ArgumentParser(prog="scripts/mutate.sh", description="Plants mistakes and reports which are noticed.")
    parser.add_argument("--check", action="store_true", help="only check that every mutant can be applied")
    parser.add_argument("--self-test", action="store_true", help="prove that bad data is refused")
    parser.add_argument("--list", action="store_true", help="print the mutants")
    parser.add_argument("--record", action="store_true", help="keep the outcomes in outcomes.txt")
    parser.add_argument("--table", action="store_true", help="write the tables of outcomes.txt into docs/methodology.md")
    parser.add_argument("--only", action="append", metavar="ID", help="mutants whose id begins with this; repeatable")
    parser.add_argument("--noticed", action="store_true", help="those that were noticed soon the last time: they must be noticed again")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of them, drawn with --seed")
    parser.add_argument("--seed", default="1", help="any text, for example a revision")
    parser.add_argument("--jobs", type=int, default=1, help="how many at a time, each with a copy and build")
    parser.add_argument("--seeds", type=int, default=6000, help="seeds of check for each index")
    parser.add_argument("--cpu", type=float, default=120, dest="cpu_s", help="seconds of processor time for check, an index")
    parser.add_argument("--test-cpu", type=float, default=60, dest="test_s", help="seconds of processor time for a test")
    parser.add_argument("--resume", action="store_true", help="keep outcomes of earlier runs on the same sources")
    parser.add_argument("--no-baseline", action="store_true", help="do not test the unchanged sources first")
    parser.add_argument("--no-last", action="store_true", help="skip " + LAST_TEST)
    return parser.parse_args(arguments)


def main():
    options = parse(sys.argv[1:])
    root = pathlib.Path(__file__).resolve().parents[2]
    try:
        if options.self_test:
            self_test(root)
            return 0
        mutants = mutants_read(root)
        if options.check:
            lost = set(outcomes_read()) - {mutant["id"] for mutant in mutants}
            if lost:
                raise Refused("tests/mutation/outcomes.txt: there is no mutant " + ", ".join(sorted(lost)))
            table_of_document(root, mutants, False)
            print(f"{len(mutants)} mutants can be applied")
            return 0
        if options.table:
            table_of_document(root, mutants, True)
            return 0
        known = mutants
        mutants = chosen(mutants, options)
        if options.list:
            for mutant in mutants:
                print(f"{mutant['id']}: {mutant['file']}: {mutant['breaks']}")
            return 0
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        rows = campaign(root, mutants, options)
    except Refused as error:
        print(f"mutate: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        running.stop()
        print("mutate: interrupted; --resume keeps the outcomes so far", file=sys.stderr)
        return 130
    if options.record:
        outcomes_write(known, rows)
    print("\n" + table(mutants, rows))
    late = [m["id"] for m in mutants if rows[m["id"]]["state"] == "survived" and not {"equivalent", "survives"} & set(m)]
    bad = [m["id"] for m in mutants if rows[m["id"]]["state"] == "refused"]
    if late or bad:
        print("\nnot noticed and without a reason: " + (", ".join(late) or "none") + "; do not compile: " + (", ".join(bad) or "none"))
    wrong = [m["id"] for m in mutants if rows[m["id"]]["state"] == "killed" and {"equivalent", "survives"} & set(m)]
    if wrong:
        print("\nnoticed, although a reason says that they are not: " + ", ".join(wrong))
    return 1 if late or bad else 0


if __name__ == "__main__":
    sys.exit(main())
