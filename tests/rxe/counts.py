# SPDX-License-Identifier: Apache-2.0
#
# counts.py NAME A B TOLERANCE [OF_COUNTS]: compares the cost of operations in results A and B: round trips, verbs and
# bytes, for each kind of operation, and how many operations of the kind there were. Prints one line per kind, and each
# difference. Exits with status 1 if a difference is more than TOLERANCE times the cost in B: for round trips and verbs of
# its round trips, for bytes of its bytes; or more than OF_COUNTS (0) times the number of operations.
import json
import sys


def costs(path):
    with open(path, encoding="utf-8") as file:
        ops = json.load(file)["ops"]
    found = {}
    for kind, op in ops.items():
        found[kind] = {"count": op["count"], "round trips": op["round_trips_mean"]}
        found[kind].update({"bytes " + side: op[f"bytes_{side}_mean"] for side in ("read", "written")})
        found[kind].update(op["verbs_mean"])
    return found


def differs(what, a, b, tolerance, of_counts):
    if what == "count":
        return abs(a.get(what, 0) - b.get(what, 0)) > float(of_counts) * b.get(what, 0)
    whole = b.get("bytes read", 0) + b.get("bytes written", 0) if what.startswith("bytes") else b.get("round trips", 0)
    return abs(a.get(what, 0) - b.get(what, 0)) > float(tolerance) * whole


def main(name, first, second, tolerance, of_counts="0"):
    ours, theirs = costs(first), costs(second)
    differences = []
    for kind in sorted(set(ours) | set(theirs)):
        a, b = ours.get(kind, {}), theirs.get(kind, {})
        verbs = sum(a.get(verb, 0) for verb in ("read", "write", "cas", "faa", "masked_cas", "masked_faa", "call"))
        print(f"{name} {kind}: {a.get('count', 0)} operations, {a.get('round trips', 0):.3f} round trips, "
              f"{verbs:.3f} verbs, {a.get('bytes read', 0):.1f} B read, {a.get('bytes written', 0):.1f} B written")
        differences += [f"{name} {kind}: {what}: {a.get(what)} and {b.get(what)}"
                        for what in sorted(set(a) | set(b)) if differs(what, a, b, tolerance, of_counts)]
    print("\n".join(differences), end="\n" if differences else "")
    return 1 if differences or not ours else 0


sys.exit(main(*sys.argv[1:]))
