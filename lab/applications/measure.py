"""Measures a stock application under overload: alone, behind HAProxy, and behind bywash. See scripts/applications.

To find the knee, the rate of arriving visitors rises. The access log gives the number of answers and their times for each
half minute. The knee is the highest rate of answers before the half minutes in which one answer in twenty took more than a
second. ρ = 1 in the tables is that rate."""

import argparse
import datetime
import importlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tools"))
import play
from bywash_lab import figures as pages
from bywash_lab.processes import Processes, exit_on_sigterm
from bywash_lab.reports import fail, save
from bywash_lab.summaries import quantile

HAPROXY = [4, 8, 16]
STARTS = [16, 64]  # limits that slope starts with and that are too high
SLOPES = ["slope", *(f"slope-{limit}" for limit in STARTS)]
CONFIGURATIONS = ["bywash", *SLOPES, "init", "noticed", "tokens"]
PROGRAMS = ["bare", *(f"haproxy-{maxconn}" for maxconn in HAPROXY), *CONFIGURATIONS]
PROBE, WINDOW = 20, 30  # seconds
CLIENTS = 20  # clients of the probe
TOPS = [1.25, 2.5]  # the ends of ramps, relative to the probe's rate of answers
WARM, BETWEEN = 10, 35  # seconds before a run that are not counted; seconds until the last visitor has left
SLOW = 1.0  # seconds: a site with a p95 above this is beyond its knee


def ramp(visitors, url, root, seconds):
    """Returns throughput and latency of the bare application while the load rises, from two fifths of the time on. Writes
    ramp.log for `advise`."""
    sets = f'[[set]]\nname = "probe"\nclients = {CLIENTS}\n'
    busy = '[client]\nthink = { mean = "1ms", shape = "constant" }\npatience = { shape = "none" }\nretries = 0'
    probe = lambda: visitors.run(url, visitors.variant(PROBE, sets=sets, client=busy), 1, 1)["cells"][0]["completed"] / PROBE
    # The first probe finds the caches empty.
    probed = max(probe(), probe())
    print(f"{CLIENTS} clients without pauses get {probed:.1f} answers a second", file=sys.stderr)
    for top in TOPS:
        play.settle(url)
        (root / "access.log").write_text("")
        arrivals = (f'[arrivals]\nshape = "ramp"\nbase = {visitors.rho(0.2 * probed):.6f}\n'
                    f'at = "{seconds * 2 // 5}s"\nover = "{seconds * 3 // 5}s"')
        visitors.run(url, visitors.variant(seconds, arrivals=arrivals), visitors.rho(top * probed), 1)
        log = (root / "access.log").read_text()
        rows = windows(log, seconds)
        if knee := knee_of(rows):
            (root / "ramp.log").write_text(log)
            play.settle(url)
            return {"probed": probed, "windows": rows, "knee": knee}
        print(f"no knee up to {top * probed:.1f} answers a second: {rows}", file=sys.stderr)
    fail("the ramp has no knee: the application was slow from the start, or something else slowed it down")


def windows(log, seconds):
    """Returns three numbers for each half minute: the answers per second, and the p50 and p95 of their times in seconds."""
    line = re.compile(r'\[(\d+/\w+/\d+:\d+:\d+:\d+) .*?" rt=([\d.]+)')
    seen = [(datetime.datetime.strptime(at, "%d/%b/%Y:%H:%M:%S").timestamp(), float(took)) for at, took in line.findall(log)]
    begun, rows = min(at for at, _ in seen), {}
    for at, took in seen:
        rows.setdefault(int(at - begun) // WINDOW, []).append(took)
    return [[len(took) / WINDOW, *(round(quantile(took, share), 3) for share in (0.5, 0.95))]
            for number, took in sorted(rows.items()) if number < seconds // WINDOW]


def knee_of(rows):
    """Returns the rate of answers at the knee, in answers per second, or None if the rows have no knee."""
    slow = next((number for number, (row, after) in enumerate(zip(rows, rows[1:])) if min(row[2], after[2]) > SLOW), 0)
    return max(rate for rate, *_ in rows[:slow]) if slow else None


def show_ramp(found):
    print("| answers/s | p50 ms | p95 ms |\n|---|---|---|")
    for rate, half, most in found["windows"]:
        print(f"| {rate:.1f} | {1000 * half:.0f} | {1000 * most:.0f} |")
    print(f"\nThe knee: {found['knee']:.1f} answers a second.\n")


def configurations(kind, url, root):
    """Writes the files of bywash: that of `advise` for the ramp's log, the same with slope from there and from limits that are
    too high, and that of `init`. Two more have slots that departures free at once, and tokens as sessions."""
    files = {"bywash": root / "advise.toml", "init": root / "init.toml"}
    files |= {name: root / f"{name}.toml" for name in ("noticed", "tokens")}
    files |= {name: root / f"{name}.toml" for name in SLOPES}
    advise = [play.BYWASH, "advise", root / "ramp.log", "--upstream", url, "--out", files["bywash"], "--force"]
    (root / "advise.txt").write_text(subprocess.run(advise, check=True, capture_output=True, text=True).stdout)
    text = enforce(files["bywash"])
    if 'policy = "slope"' not in text:
        text += '\n[concurrency]\npolicy = "slope"\n'
    files["slope"].write_text(text)
    for limit in STARTS:
        files[f"slope-{limit}"].write_text(re.sub(r"^limit = .*", f"limit = {limit}", text, count=1, flags=re.M))
    commands = subprocess.run([play.BYWASH, "--help"], check=True, capture_output=True, text=True).stdout
    if re.search(r"^  init ", commands, re.M):
        init = [play.BYWASH, "init", kind.PRESET, "--upstream", url, "--out", files["init"], "--force"]
        subprocess.run(init, check=True, stdout=sys.stderr)
        text = enforce(files["init"])
        files["tokens"].write_text(tokens(text, root))
        files["noticed"].write_text(re.sub(r"^departures = .*", 'departures = "noticed"', text, flags=re.M))
    else:
        del files["init"], files["noticed"], files["tokens"]
    for file in files.values():
        subprocess.run([play.BYWASH, "check", file], check=True, stdout=sys.stderr)
    return files


def tokens(text, root):
    """Returns the text of a configuration file that uses session tokens in place of the application's sessions."""
    keys = root / "token.keys"
    keys.unlink(missing_ok=True)
    subprocess.run([play.BYWASH, "token-keys", keys], check=True, stdout=sys.stderr)
    return re.sub(r"^session = .*", f'session = "token"\ntoken_keys = "{keys}"', text, flags=re.M)


def enforce(file):
    """Switches a configuration file from observe to enforce. Returns its new text."""
    text, count = re.subn(r'^mode = "observe"', 'mode = "enforce"', file.read_text(), flags=re.M)
    if not count:
        fail(f"{file} is not in the mode observe")
    file.write_text(text)
    return text


def cell(program, kind, visitors, processes, url, files, rho, seed, seconds):
    """Measures one run of one program. Before it, other visitors arrive who are not counted."""
    process, front = None, url
    if program.startswith("haproxy-"):
        process, front = play.haproxy(processes, url, program.split("-")[1], kind.TRANSACTIONS)
    elif program != "bare":
        process, front = play.bywash(processes, files[program])
    try:
        visitors.run(front, visitors.variant(WARM), 0.5 * rho, 1000 + seed)
        load = os.getloadavg()[0]
        limits = play.Limits(process) if program in CONFIGURATIONS else None
        ran = visitors.run(front, visitors.variant(seconds), rho, seed) | {"load_average_before": load}
        return ran | ({"limits": limits.stop()} if limits else {})
    finally:
        if process:
            processes.end(process)
        play.settle(url)


def figures(ran, seconds):
    """Returns the figures of a run for a table. They count all requests that ended while visitors arrived."""
    one = ran["cells"][0]
    counted = one["timeline"][:seconds]
    total = lambda key: sum(second[key] for second in counted)
    slowest = next((ms for ms, share in one["response"].get("all", []) if share >= 0.95), float("nan"))
    return [total("orders"), total("completed"), slowest, total("dropped"), total("timed_out"), total("failed")]


def runs_of(root):
    """Returns the runs in a folder by load, program and seed."""
    runs = {}
    for path in sorted(root.glob("run-*.json")):
        # Runs of earlier versions of this script do not have the date.
        written = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).date().isoformat()
        ran = {"date": written} | json.loads(path.read_text())
        runs.setdefault(ran["load"], {}).setdefault(ran["program"], {})[ran["seed"]] = ran
    return {load: dict(sorted(programs.items(), key=lambda one: PROGRAMS.index(one[0]))) for load, programs in sorted(runs.items())}


def means_of(seeds):
    return [statistics.mean(column) for column in zip(*(figures(ran, ran["seconds"]) for ran in seeds.values()))]


def export(root, chosen):
    """Writes the means over the seeds of each program to a result file of docs/figures."""
    results, every = [], []
    names = ("orders", "completed", "p95_ms", "dropped", "timed_out", "failed")
    for load, programs in runs_of(root).items():
        for program, seeds in programs.items():
            orders = [figures(ran, ran["seconds"])[0] for _, ran in sorted(seeds.items())]
            means = dict(zip(names, means_of(seeds)))
            results.append({"load": load, "program": program, "seeds": len(seeds), **means, "orders_of_seeds": orders})
            every += seeds.values()
    origins = {key: {ran[key] for ran in every if key in ran} for key in ("commit", "date", "machine")}
    if chosen.commit:
        origins["commit"] = {chosen.commit}
    known = {key: ", ".join(sorted(found)) for key, found in origins.items() if found}
    knee = json.loads((root / "ramp.json").read_text())["knee"]
    command = f"scripts/applications measure {chosen.application} FOLDER"
    pages.write(chosen.export, command, results, **known, knee=f"{knee:.1f} responses a second")


def tables(root, kind):
    runs = runs_of(root)
    show_ramp(json.loads((root / "ramp.json").read_text()))
    means = {}
    for load, programs in runs.items():
        print(f"{load:g} times the knee:\n\n| | {kind.GOAL} | useful answers | p95 ms | refused | given up | failed | runs |\n|{'---|' * 8}")
        for program, seeds in programs.items():
            mean = means[load, program] = means_of(seeds)
            print(f"| {program} | " + " | ".join(f"{value:.0f}" for value in mean) + f" | {len(seeds)} |")
        for seed, ran in ((seed, ran) for seeds in programs.values() for seed, ran in seeds.items()):
            if ran.get("invalid"):
                print(f"\n{ran['program']}, seed {seed}, is invalid: {ran['invalid']}")
        print()
    slopes = (ran for programs in runs.values() for name in SLOPES for ran in programs.get(name, {}).values())
    for ran in sorted(slopes, key=lambda ran: ran["load"]):
        limits = [limit for limit in ran.get("limits", []) if limit is not None]
        if limits:
            every = ", ".join(f"{limit:g}" for limit in limits[::10])
            print(f"{ran['program']} at {ran['load']:g}, seed {ran['seed']}: limit every 10 s: {every}")
    compare(means, kind)


def compare(means, kind):
    """Prints the expected results and the measured ones."""
    for program in CONFIGURATIONS:
        for load in sorted({load for load, one in means if one == program}):
            mine, peers = means[load, program], [means[load, f"haproxy-{n}"] for n in HAPROXY if (load, f"haproxy-{n}") in means]
            if peers:
                orders, useful = (max(peer[column] for peer in peers) for column in (0, 1))
                print(f"{program} at {load:g}: {percent(mine[0], orders)} of the best HAProxy's {kind.GOAL}, "
                      f"{percent(mine[1], useful)} of the best HAProxy's useful answers")
        if (1, program) in means and (2.5, program) in means:
            print(f"{program}: {kind.GOAL} at 2.5 are {percent(means[2.5, program][0], means[1, program][0])} of those at 1")


def percent(part, whole):
    return f"{100 * part / whole:.0f} %" if whole else "—"


def arguments():
    numbers = lambda text: [float(number) for number in text.split(",")]
    parser = argparse.ArgumentParser(prog="scripts/applications measure", description=__doc__.split("\n")[0])
    parser.add_argument("application")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--loads", type=numbers, default=[1, 2.5, 6], help="the loads, as multiples of the knee")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=30, help="seconds of each run")
    parser.add_argument("--ramp", type=int, default=540, help="seconds of the ramp; advise needs three calm minutes")
    parser.add_argument("--programs", type=lambda text: text.split(","), default=PROGRAMS)
    parser.add_argument("--tables", action="store_true", help="only print the tables")
    parser.add_argument("--export", help=argparse.SUPPRESS)
    parser.add_argument("--commit", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    exit_on_sigterm()
    chosen = arguments()
    kind, root = importlib.import_module(chosen.application), chosen.folder.resolve()
    if strangers := set(chosen.programs) - set(PROGRAMS):
        fail(f"unknown program: {', '.join(strangers)}; use {', '.join(PROGRAMS)}")
    if chosen.tables:
        return tables(root, kind)
    if chosen.export:
        return export(root, chosen)
    processes, visitors, found = Processes(root), play.Visitors(kind.SCENARIO), root / "ramp.json"
    runs = len(chosen.loads) * chosen.seeds * len(chosen.programs)
    minutes = (runs * (WARM + chosen.seconds + BETWEEN) + (0 if found.exists() else 2 * PROBE + chosen.ramp + 60)) / 60
    print(f"{runs} runs; this takes {minutes:.0f} minutes at most", file=sys.stderr)
    try:
        url = kind.start(processes, root)
        if not found.exists():
            found.write_text(json.dumps(ramp(visitors, url, root, chosen.ramp), indent=1) + "\n")
        files = configurations(kind, url, root)
        rho = visitors.rho(json.loads(found.read_text())["knee"])
        programs = [program for program in chosen.programs if program in files or program not in CONFIGURATIONS]
        for turn, (seed, load) in enumerate((seed, load) for seed in range(1, chosen.seeds + 1) for load in chosen.loads):
            for number in range(len(programs)):
                program = programs[(turn + number) % len(programs)]
                path = root / f"run-{program}-{load:g}-{seed}.json"
                if path.exists():
                    continue
                ran = cell(program, kind, visitors, processes, url, files, load * rho, seed, chosen.seconds)
                ran |= {"program": program, "load": load, "seed": seed, "seconds": chosen.seconds} | pages.origin(play.ROOT)
                save(path, json.dumps(ran) + "\n")
                print(f"played {path.name}: {figures(ran, chosen.seconds)}", file=sys.stderr)
    finally:
        processes.stop()
    tables(root, kind)


main()
