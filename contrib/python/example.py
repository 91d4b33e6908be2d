# SPDX-License-Identifier: Apache-2.0
#
# example.py [DMBENCH [FOLDER]]: sweeps two indexes over the number of clients and draws what came of it. Cells begin with
# "# %%": editors such as VS Code and Spyder run them one by one, like a notebook. pandas and matplotlib are used if they are
# there; the numbers are printed in any case.

# %% A sweep, which is not run again if its results are there.
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import dmbench_results as dm

dmbench = sys.argv[1] if len(sys.argv) > 1 else "dmbench"
folder = sys.argv[2] if len(sys.argv) > 2 else "results/example"
grid = ["index=sherman,chime", "clients=4,16,64", "workload=b", "keys=20K", "ops=5K"]
subprocess.run([dmbench, "sweep", "--out", folder] + [word for one in grid for word in ("--grid", one)], check=True)

# %% Its results: a row each.
rows = sorted(dm.rows(folder), key=lambda row: (row["config.index"], row["config.clients"]))
for row in rows:
    print(f"{row['config.index']:8} {row['config.clients']:4} clients  {row['throughput_ops_per_s'] / 1e6:6.2f} Mops/s"
          f"  P99 of gets {row['ops.get.latency_ns.p99'] / 1e3:6.1f} us")

# %% The same as a data frame.
try:
    frame = dm.frame(folder)
    print(frame.pivot_table(index="config.clients", columns="config.index", values="throughput_ops_per_s"))
except ImportError:
    print("pandas is not installed: no data frame")

# %% Latencies of all gets of an index together: histograms add up.
for index in ("sherman", "chime"):
    gets = dm.Histogram()
    for _, result in dm.read_all(folder):
        if result["config"]["index"] == index:
            gets += dm.Histogram(result["ops"]["get"]["histogram"])
    print(f"{index:8} {gets.count} gets: median {gets.quantile(0.5)} ns, P99.9 {gets.quantile(0.999)} ns")

# %% A picture.
try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    for index in ("sherman", "chime"):
        own = [row for row in rows if row["config.index"] == index]
        plt.plot([row["config.clients"] for row in own], [row["throughput_ops_per_s"] / 1e6 for row in own], "o-", label=index)
    plt.xscale("log", base=2)
    plt.xlabel("clients")
    plt.ylabel("Mops/s")
    plt.legend()
    plt.savefig(os.path.join(folder, "example.png"))
    print(os.path.join(folder, "example.png"))
except ImportError:
    most = max(row["throughput_ops_per_s"] for row in rows)
    for row in rows:
        bar = "#" * round(50 * row["throughput_ops_per_s"] / most)
        print(f"{row['config.index']:8} {row['config.clients']:4} {bar}")
