# SPDX-License-Identifier: Apache-2.0
#
# words.py FILE...: prints words of the project's former private English, each with the field's word for it.
# words.py --self-test: proves on sentences that each word is caught and that its ordinary uses are not.
#
# Identifiers are read as words too (key_place is "place"). Comments and strings are read across the ends of lines, so
# that a phrase is seen, and an ordinary use is known, where it is broken.
import bisect
import re
import sys

# What is refused, what to write instead, a sentence that is caught, and sentences with ordinary uses that are not. A
# pattern is searched in lower case, and "_" is an edge of a word.
WORDS = [
    (
        r"(?<!\bin )(?<!in-)(?<!in_)(?<!\btake )(?<!\btakes )(?<!\btaken )(?<!\btaking )(?<!\btook )(?<!\bone )\bplaces?\b",
        "address, slot, index, offset, position, location",
        ["its place in the table", "key_place(judge)", "size_t places[2]"],
        ["sorted in place", "an update in-place", "a split takes place", "a placeholder", "a replacement", "in one place"],
    ),
    (r"\brooms?\b", "capacity, space, free space, buffer", ["room for two", "check_room(wl)"], ["a broom"]),
    (
        r"(?<!two)(?<!one)(?<!each)(?<!either)(?<!same)(?<!other)(?<!both)(?<!any)(?<!this)(?<!half)(?<!three)(?<!no)"
        r"(?<!wrong)(?<!right)(?<!\d)(?<!\bn)[ _-]way\b(?! (?:of|down|up|in|out|back|to|there|through)\b)|\b(?:its|their|the|under) way\b"
        r"|\bways?\.(?:c|h)\b|^way\b|\bway (?:of|down|up|in|out|back|to|there|through)\b|(?:->|\.|\*|&)way\b",
        "path, route, protocol, method, descent",
        ["the way down", "a scan's way", "node->way", "the message is under way", "dolphin_way(x)", "the way of a verb"],
        ["two-way", "one-way latency", "one_way.bench", "8-way", "in the same way", "always", "the other way round"],
    ),
    (r"\btells? apart\b|\btold apart\b", "distinguishes", ["they are told apart by a version"], []),
    (
        r"\b(?:tells?|told|telling)\b(?! apart)",
        "reports, returns, states; is reported",
        ["the client is told", "seen_tells", "it tells how full it is"],
        ["a satellite"],
    ),
    (
        r"\b(?:nic|node|server|word|leaf|entry|header|peer|worker|process|bit|flag|version|bucket|slot|model|cache|lock) says?\b",
        "states, reports, holds",
        ["what the header says"],
        ["the paper says", "a comment says why"],
    ),
    (r"\bof no use\b", "unusable, useless", ["the rest is of no use"], ["of use"]),
    (r"\bparted\b", "separated", ["parted by blanks"], ["departed", "taken apart by an option"]),
    (
        r"\b(?:to|and|only|most) \S+ (?:is|are) possible\b",
        "must be 1 to 64",
        ["1 to %d are possible"],
        ["is_possible(message)", "reads are possible"],
    ),
    (r"\bwhere is what\b", "Files", ["## Where is what"], []),
    (r"\blets? go\b|_let\b|\blet_", "release", ["until let go of", "ix_tree_parent_let(tree)"], ["lets other contexts run"]),
    (r"_(?:knows?|meets?)\b", "barrier, is_known, learned", ["hx_team_meet(team)", "group_know(x)"], ["it is known", "keys meet"]),
    (r"\bmanieth\b", "every n-th", ["every so manieth point"], []),
    (
        r"\bcomes? to (?:come|be|the same|about|what|much|little|nothing|[0-9%])",
        "amounts to, is",
        ["it comes to 14.7 GB"],
        ["comes to the end", "come to rest"],
    ),
    (
        r"\b(?:stands?|stood|standing)\b(?! (?:for|alone)\b)(?!-alone)",
        "is, is stored; stalls, makes no progress",
        ["a client stands still", "words stand in any order", "CK_CLIENT_STANDS"],
        ["a leaf stands for many", "stand-alone", "it may stand alone", "understand"],
    ),
    (r"\b(?:go|goes|went|gone|going) on\b", "continues", ["and goes on with it", "may go on at the next"], ["ongoing"]),
    (r"\bin hand\b", "current, held", ["the leaf in hand"], ["in hands", "beforehand"]),
    (
        r"\bwhole or\b|\b(?:is|are|was|were|be|been|read|reads|written|fetched|sent|seen|arrives?) whole\b(?! (?:number|of|file))"
        r"|\b(?:node|leaf|lines?|block|read)_whole\b",
        "consistent, complete; atomically",
        ["whole or not at all", "the node is whole.", "ix_node_whole(buffer)"],
        ["is whole number", "as a whole", "the whole file"],
    ),
    (r"\bby (?:itself|themselves)\b", "alone, separately, on its own", ["runs by itself"], ["by its"]),
    (
        r"\b(?:takes?|taken|taking|took)[ _]over\b",
        "adopts, inherits, copies",
        ["a leaf takes over its neighbour", "taken_over"],
        ["an overtaken request", "overtakes"],
    ),
    (r"\bblocks? (?:is|are|was|were)? ?gone\b|\bblock_gone\b", "reused, freed", ["the block is gone"], ["blocks that are reused"]),
    (r"\bgates?\b", "local lock queue; barrier; check", ["a gate of the node", "cn->gates"], ["aggregate", "delegates"]),
    (
        r"\b(?:somebody|whoever|nobody|anybody|everybody)\b",
        "another client, the client that, no client",
        ["whoever waits", "nobody waits"],
        ["whichever"],
    ),
    (r"\blate ?comers?\b|\bstrangers?\b", "late arrival, unauthenticated connection", ["a stranger", "STRANGER_NS"], ["strange"]),
    (r"\bguests?\b", "member process", ["the guests of a node", "guest_close(verbs)"], ["guessed"]),
    (r"\bmanner\b|\bmany an?\b|\bone after the other\b", "one by one; method", ["one after the other"], ["as many as"]),
    (
        r"\b(?:that|which|what) (?:is|are) to \w+\b|\bis to hold\b",
        "will be, must hold",
        ["a node that is to be", "what its entry is to hold"],
        ["what is today", "that is, to be exact"],
    ),
    (r"\bbeing held\b", "held", ["a lock that is being held"], ["beings"]),
    (
        r"\bas far as \w+(?: and \w+)? (?:allows?|goes|go|permits?)\b",
        "up to the fill that hashing permits; as much as memory permits",
        ["as far as hashing allows", "as far as memory goes"],
        ["as far as the end"],
    ),
    (r"\b(?:lie|lies|lay) behind\b", "follows, is stored after", ["the lock word lies behind it"], ["lies beside"]),
]
# Where a word is the field's: the guest of a virtual machine.
ORDINARY = [(r"^tests/rxe/|^run_tests\.sh$", "guest")]
# The list of words itself.
SKIPPED = {"tests/style/words.py"}


def searchable(text):
    return text.lower().replace("_", "~")


def compiled(pattern):
    return re.compile(pattern.replace("_", "~"))


PATTERNS = [(compiled(row[0]), row[1]) for row in WORDS]


def flowing(text):
    """The text with what begins and ends lines of comments and strings dropped; and where each line begins in it."""
    parts, starts, length, quoted = [], [], 0, False
    for line in text.split("\n"):
        line = re.sub(r"^[ \t]*(?:/\*+|\*/|\*(?= |$)|//|#+(?= )|\|)?[ \t]*", "", line).rstrip()
        if quoted and line.startswith('"'):
            line = line[1:]
            # The string went on: take back its end and the blank.
            parts[-1] = parts[-1][:-2] if parts[-1].endswith('" ') else parts[-1]
            length = sum(map(len, parts[-1:])) + starts[-1]
        quoted = line.endswith('"')
        starts.append(length)
        parts.append(line + " ")
        length += len(line) + 1
    return "".join(parts), starts


def found_in(text, path=""):
    """(line, what was found, what to write instead) of a text."""
    text, starts = flowing(text)
    lower = searchable(text)
    found = []
    for pattern, instead in PATTERNS:
        for match in pattern.finditer(lower):
            word = " ".join(text[match.start() : match.end()].split())
            if any(re.search(where, path) and known in word.lower() for where, known in ORDINARY):
                continue
            found.append((bisect.bisect_right(starts, match.start()), word, instead))
    return sorted(found)


def self_test():
    failures = []
    for pattern, _, caught, ordinary in WORDS:
        one = compiled(pattern)
        failures += [f"not caught by {pattern}: {text}" for text in caught if not one.search(searchable(flowing(text)[0]))]
        failures += [f"caught by {pattern}: {text}" for text in ordinary if one.search(searchable(flowing(text)[0]))]
    broken = '/* The client\n * is\n * told, in\n * place. */\n"it goes "\n    "on", "in "\n    "place"\n'
    if [(line, word) for line, word, _ in found_in(broken)] != [(3, "told"), (5, "goes on")]:
        failures.append(f"broken lines: {found_in(broken)}")
    if found_in("the guest", "tests/rxe/run.sh") or not found_in("the guest", "common/a.c"):
        failures.append("a guest")
    print("\n".join(failures))
    return bool(failures)


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    complaints = 0
    for path in sys.argv[1:]:
        if path in SKIPPED:
            continue
        found = found_in(open(path, encoding="utf-8").read(), path) + [
            (0, word, instead) for _, word, instead in found_in(path, path)
        ]
        for line, word, instead in found:
            print(f"{path}:{line}: '{word}': write {instead}")
        complaints += len(found)
    return complaints > 0


sys.exit(main())
