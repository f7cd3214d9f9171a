#!/usr/bin/env python3
"""The cost model of docs/scale.md: measures its constants, compares it with the simulator and real processes, prints its tables.

  scripts/scale.py constants     processor time of chief, server and worker: real processes on this machine, from Linux's statistics of their threads
  scripts/scale.py memory        memory of a server by slice size: real processes
  scripts/scale.py cells         the standard cells by the cost model
  scripts/scale.py check         real processes, the simulator and the cost model compared
  scripts/scale.py simulate --workers 64 --servers 8 --gbit 25 --strategies lb-bsp,hps
  scripts/scale.py job --workers 64 --servers 8 --gbit 25           the job that `simulate` runs
  scripts/scale.py predict       servers needed for nine tenths of the sum of the parts, and the load of their processors
  scripts/scale.py chiefs        the number of workers that one chief can drive

Needs only Python's standard library. --motley is the path of the binary (default build/motley).
"""
import argparse
import json
import math
import os
import struct
import subprocess
import tempfile
import time
from dataclasses import dataclass

PART = {32: 1, 16: 0.5, 8: (1 + 2 / 256) / 4, 4: (0.5 + 2 / 256) / 4}  # fraction of the bytes at 32 bits per value
LEVELS = ((32, 32, 1), (16, 16, 1), (8, 8, 0.998), (4, 8, 0.99))  # push, pull, relative value: policy/communication/predictive_communication.cpp

# Constants fitted by hand to the fastest measured runs (see docs/scale.md for the data and errors): seconds of one core.
CHIEF_STEP = 50e-6  # of the chief's event loop: per step of a worker, without slices
CHIEF_SERVER = 4e-6  # the same, for each server beyond the first
LOOP_SLICE = 4e-6  # of a server's event loop: per slice in or out
LOOP_BYTE = 0.13e-9  # of a server's event loop: per byte of it
WORKER_BYTE, WORKER_CODED_BYTE = 0.4e-9, 0.75e-9  # of a worker's event loop: per byte of floats pushed and pulled, at 32 and at few bits
SUM_BYTE = 1 / 19.4e9  # of a store thread: per byte of floats summed into an update
DECODE_BYTE = 1 / 6.5e9  # of a store thread: per byte of floats decoded from few bits


@dataclass
class Load:
    """The workload and the workers, whose speeds follow a repeated pattern."""
    values: int = 11_200_000  # ResNet-18
    speeds: tuple = ((4000, 2), (2000, 1), (1000, 1))  # samples/s, number in the pattern
    overhead: float = 0.002  # fixed seconds per step
    batch: int = 64  # samples of an average worker and step
    latency: float = 50e-6

    def __post_init__(self):
        self.pattern = sum(n for _, n in self.speeds)
        rate = sum(speed * n for speed, n in self.speeds)
        self.together = (self.pattern * self.batch + rate * self.overhead) / rate  # seconds of a step that all finish together
        self.slowest = self.overhead + self.batch / min(speed for speed, _ in self.speeds)  # of the slowest worker with equal batches

    @property
    def bytes(self):
        return 4 * self.values

    def local(self, samples):
        """Time of a global batch in local steps of `samples` samples, relative to one step that all finish together."""
        rate = sum(n * samples / (self.overhead + samples / speed) for speed, n in self.speeds)
        return self.pattern * self.batch / rate / self.together


# The cost model ------------------------------------------------------------------------------------------------------------------------

@dataclass
class Wire:
    """P workers with links of L bytes/s, S servers with cards of N bytes/s."""
    load: Load
    P: int
    S: int
    L: float
    N: float
    slice_bytes: float
    loops: bool = False  # whether the servers' event loops take time; in the simulator they take none

    def __post_init__(self):
        self.k = max(1.0, self.load.bytes / self.slice_bytes / self.S)  # slices of a server
        self.uneven = math.ceil(self.k) / self.k if self.S > 1 else 1  # a server holds whole slices
        self.latencies = (2 if self.S == 1 else 4) * self.load.latency

    def one_way(self, bits, workers=None):
        """Seconds of a transfer by all workers at once: the slower of a worker's link and a server's card, plus 1/k of the other."""
        own = PART[bits] * self.load.bytes / self.L
        card = self.uneven * PART[bits] * self.load.bytes * (workers or self.P) / (self.S * self.N)
        return max(own, card) + min(own, card) / self.k

    def event_loop(self, push, pull, workers=None):
        """Seconds of a server's event loop for one push and pull of all workers."""
        floats = self.uneven * (workers or self.P) * self.load.bytes / self.S
        return 2 * floats / self.slice_bytes * LOOP_SLICE + floats * (PART[push] + PART[pull]) * LOOP_BYTE

    def both(self, push, pull, workers=None):
        transfer = self.one_way(push, workers) + self.one_way(pull, workers) + self.latencies
        return max(transfer, self.event_loop(push, pull, workers)) if self.loops else transfer


def period(strategy, wire, H=16):
    """Seconds between two updates by devices and network, and the seconds of the computation alone."""
    load, T = wire.load, wire.load.together
    if strategy == "bsp":  # fast workers push early; the slowest push last, then all pull
        free = 0.0
        for speed, n in load.speeds:
            done, of = load.overhead + load.batch / speed, n * wire.P / load.pattern
            free = max(free, done) + load.bytes * of / (wire.S * wire.N)
        push = max(free - load.slowest, wire.one_way(32, of))
        return load.slowest + push + wire.one_way(32) + wire.latencies, T
    if strategy == "lb-bsp":
        return T + wire.both(32, 32), T
    if strategy == "hps":  # the choice of policy/communication/predictive_communication.cpp
        apart = max((value / (T + c), T + c) for u, d, value in LEVELS for c in [wire.both(u, d)])
        u, d, value = next((level for level in LEVELS if wire.both(*level[:2]) <= 0.7 * T), LEVELS[-1])
        hidden = max(T, wire.both(u, d))
        return max(apart, (0.92 * value / hidden, hidden))[1], T
    if strategy == "grouped":  # two alternating groups of half the workers, as far as the cards allow
        u, d, _ = LEVELS[-1]
        return max(T + wire.both(u, d, wire.P / 2), wire.one_way(d), wire.event_loop(u, d) if wire.loops else 0), T
    if strategy == "multistep":
        return max(H * T * load.local(max(64, load.batch)), wire.both(4, 4)), H * T
    raise ValueError(strategy)


def share(strategy, wire, H=16):
    took, ideal = period(strategy, wire, H)
    return ideal / took


def bits_of(strategy, wire):
    """Bits per value of push and pull that a strategy chooses."""
    if strategy in ("bsp", "lb-bsp"): return 32, 32
    if strategy == "multistep": return 4, 4
    if strategy == "grouped": return 4, 8
    T = wire.load.together
    return next((level for level in LEVELS if wire.both(*level[:2]) <= 0.7 * T), LEVELS[-1])[:2]


def processors(strategy, wire):
    """Processor seconds per update: of the chief's event loop, of a server's event loop, of a server's store with one thread."""
    u, d = bits_of(strategy, wire)
    floats = wire.P * wire.load.bytes / wire.S  # pushed to a server, and sent by it
    chief = wire.P * (CHIEF_STEP + CHIEF_SERVER * (wire.S - 1))
    store = floats * (SUM_BYTE + (DECODE_BYTE if u < 16 else 0))
    return chief, wire.event_loop(u, d), store


def fewest(strategy, load, P, line, H=1, loops=False, wanted=0.9, most=4096):
    """The fewest servers with which devices and network (and event loops) allow the wanted share. Slices: 64 KiB, at least four per server; with
    event loops, the best of several sizes."""
    def wire(S):
        sizes = [min(load.bytes / S / 4, 65536)]
        if loops: sizes += [1 << 18, 1 << 20, *(min(load.bytes / S / k, 1 << 20) for k in (1, 2, 4))]
        wires = [Wire(load, P, S, line, line, size, loops) for size in sizes if load.bytes / size / S >= 0.99]
        best = max(wires, key=lambda one: (share(strategy, one, H), one.k))
        return best if share(strategy, best, H) >= wanted else None
    high = 1
    while high <= most and wire(high) is None: high *= 2
    low = high // 2
    while high <= most and high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wire(middle) else (middle, high)
    return wire(high) if high <= most else None


def command_predict(args):
    load = Load(batch=args.batch)
    print(f"A step of {args.batch} samples per worker takes {load.together * 1e3:.1f} ms when all finish together. "
          f"From `servers` on: with cards of {args.detail:g} Gbit/s.\n")
    print("| strategy | workers |", " | ".join(f"cards, {gbit} Gbit/s" for gbit in args.gbit),
          "| servers | of slices | event loop | store threads | worker's event loop | chief |\n|---|---:|" + "---:|" * (len(args.gbit) + 6))
    percent = lambda x: f"{x:.0%}" if x < 10 else f"{x:.0f}x"
    for full in args.strategies:
        strategy, H = full.split(":")[0], steps_of(full) if "multistep" in full else 1
        for P in args.workers:
            cells = []
            for line in (gbit / 8 * 1e9 for gbit in args.gbit):
                cards = fewest(strategy, load, P, line, H)
                most = share(strategy, Wire(load, P, 4096, line, line, load.bytes / 4096 / 4), H)
                cells.append(f"{cards.S:,}" if cards else f"({most:.2f})")
            wire = fewest(strategy, load, P, args.detail / 8 * 1e9, H, loops=True)
            if wire:
                took = period(strategy, wire, H)[0]
                chief, event_loop, store = processors(strategy, wire)
                worker = load.bytes * (WORKER_CODED_BYTE if bits_of(strategy, wire)[0] < 16 else WORKER_BYTE)
                cells += [f"{wire.S:,}", f"{wire.slice_bytes / 1024:.0f} KiB", percent(event_loop / took), f"{math.ceil(store / took / 0.9)}",
                          percent(worker / took), percent(chief / took)]
            else:
                cells += ["none", "", "", "", "", ""]
            print(f"| {full} | {P:,} |", " | ".join(cells), "|")


def most_workers(strategy, load, line, H, chief_of):
    """The most workers for one chief, at nine tenths of its core, with as many servers as they need."""
    best = None
    for P in sorted({4 * round(2 ** (i / 8)) for i in range(4, 90)}):
        wire = fewest(strategy, load, P, line, H, loops=True)
        if wire is None or chief_of(wire) > 0.9 * period(strategy, wire, H)[0]: break
        best = wire
    return best


def command_chiefs(args):
    each = lambda wire: processors("bsp", wire)[0]
    by_round = lambda wire: wire.P * CHIEF_STEP + wire.S * CHIEF_STEP  # a server exchanges one message per round, as a worker does
    print("| strategy | Gbit/s | samples a worker | workers | servers | with one message a server and round | servers |\n"
          "|---|---:|---:|---:|---:|---:|---:|")
    for full in args.strategies:
        strategy, H = full.split(":")[0], steps_of(full) if "multistep" in full else 1
        for gbit in args.gbit:
            for batch in (64, 256):
                now, then = (most_workers(strategy, Load(batch=batch), gbit / 8 * 1e9, H, rule) for rule in (each, by_round))
                cell = lambda wire: f"{wire.P:,} | {wire.S}" if wire else "none | "
                print(f"| {full} | {gbit:g} | {batch} | {cell(now)} | {cell(then)} |", flush=True)


def steps_of(strategy):
    return next((int(knob[6:]) for knob in strategy.split(":") if knob.startswith("steps=")), 16)


# Jobs ----------------------------------------------------------------------------------------------------------------------------------

def job(load, P, S, link, card, slice_bytes, updates, model='kind = "none"  # timing only', data='kind = "none"'):
    if 'kind = "none"' in model: model += f"\nvalues = {load.values}"
    nodes = "\n".join(f'[[cluster.node]]\nname = "s{speed}"\ncount = {P * n // load.pattern}\nsamples_per_second = {speed}\n'
                      f"overhead_s = {load.overhead}\n" for speed, n in load.speeds)
    return f"""[job]
max_epochs = 1
evaluate_every = 1

[model]
{model}

[data]
{data}
samples = {updates * P * load.batch}

[optimizer]
lr = 0.0001

[batch]
global = {P * load.batch}

[wire]
slice = {slice_bytes}

[cluster.link]
bandwidth = "{link / 1e6:.6g}MB/s"
latency_s = {load.latency}

[cluster.server]
count = {S}
bandwidth = "{card / 1e6:.6g}MB/s"

{nodes}"""


def steady(trace):
    """Samples/s from a third to nine tenths of the counted samples of a trace, without its beginning and end."""
    record = struct.Struct("<qBIQQQ19x")  # src/trace/record.h, the fields of Counted
    with open(trace, "rb") as file:
        assert file.read(16) == b"motley trace v2\n", f"{trace} is of another version"
        counted = [(entry[0] / 1e9, entry[5]) for entry in record.iter_unpack(file.read()) if entry[1] == 9]
    total = sum(samples for _, samples in counted)
    done, within, begin, end = 0, 0, None, None
    for at, samples in counted:
        if begin is None and done >= total / 3: begin = at
        elif begin is not None and at > begin and done < 0.9 * total: within, end = within + samples, at
        done += samples
    return within / (end - begin)


def simulate(args, text, strategy):
    with tempfile.TemporaryDirectory() as folder:
        path, trace = os.path.join(folder, "job.toml"), os.path.join(folder, "trace.bin")
        with open(path, "w") as file: file.write(text)
        out = subprocess.run([args.motley, "simulate", path, "--strategy", strategy, "--trace", trace, "--json"], check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        return steady(trace), json.loads(out)


def command_simulate(args):
    load = Load(batch=args.batch)
    print("| workers | servers | Gbit/s | slice | strategy | paper | simulated | ratio | took |\n"
          "|---:|---:|---:|---:|---|---:|---:|---:|---:|")
    for P in args.workers:
        for S in args.servers:
            for gbit in args.gbit:
                for strategy in args.strategies:
                    H = steps_of(strategy) if "multistep" in strategy else 1
                    line = gbit / 8 * 1e9
                    paper = share(strategy.split(":")[0], Wire(load, P, S, line, line, args.slice), H)
                    began = time.time()
                    rate, told = simulate(args, job(load, P, S, line, line, args.slice, args.updates * min(H, 10)), strategy)
                    seen = rate / told["sum_of_parts_samples_per_second"]
                    print(f"| {P} | {S} | {gbit:g} | {args.slice} | {strategy} | {paper:.3f} | {seen:.3f} | {paper / seen:.2f} | "
                          f"{time.time() - began:.0f} s |", flush=True)


# Real processes ------------------------------------------------------------------------------------------------------------------------

def family(pid):
    """A process and all its descendants."""
    found = [pid]
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children") as file:
            for child in file.read().split(): found += family(int(child))
    return found


def look(pid, seen, resident):
    """Records processor seconds of every thread so far: (role, process, thread) -> seconds; and the peak memory of each process: (role, process) ->
    bytes. The event loop is the first thread of its process."""
    for one in family(pid):
        with open(f"/proc/{one}/cmdline") as file: words = file.read().split("\0")
        role = next((word for word in words if word in ("chief", "server", "worker")), None)
        if role is None: continue
        for thread in os.listdir(f"/proc/{one}/task"):
            with open(f"/proc/{one}/task/{thread}/schedstat") as file: seen[role, one, int(thread)] = int(file.read().split()[0]) / 1e9
        with open(f"/proc/{one}/statm") as file:
            pages = int(file.read().split()[1])
        resident[role, one] = max(resident.get((role, one), 0), pages * os.sysconf("SC_PAGE_SIZE"))


def train(args, text, strategy):
    """Trains with real processes: steady samples/s, processor seconds of the threads, memory of the processes."""
    seen, resident = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "job.toml"), os.path.join(folder, "run")
        with open(path, "w") as file: file.write(text)
        process = subprocess.Popen([args.motley, "train", path, "--strategy", strategy, "--bulk", "tcp", "--json", "--out", out,
                                    "--checkpoint-every", "0"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            try: look(process.pid, seen, resident)
            except OSError: pass  # a process has just ended
            time.sleep(0.02)
        if process.returncode != 0: raise SystemExit(f"{args.motley} train failed: {process.returncode}")
        return steady(os.path.join(out, "trace.bin")), seen, resident


def fast_job(P, S, updates, inputs, hidden, slice_bytes):
    """Devices that compute one sample per step, nothing emulated: the remaining time is the cost of Motley."""
    return f"""[job]
max_epochs = 1
evaluate_every = 1
[model]
kind = "mlp"
hidden = {hidden}
[data]
kind = "noise"
samples = {updates * P}
classes = 2
picture = [1, 1, {inputs}]
[optimizer]
lr = 0.0001
[batch]
global = {P}
[wire]
slice = {slice_bytes}
[cluster.server]
count = {S}
[[cluster.node]]
name = "w"
count = {P}
device = "cpu"
samples_per_second = 1000000
"""


def spent(args, P, S, updates, model, strategy="bsp"):
    """Microseconds per step of a worker, by kind of thread: the difference of a short and a long run, each the fastest of `args.repeats`."""
    lowest = []
    for n in updates:
        runs = []
        for _ in range(args.repeats):
            sums = {}
            for (role, pid, thread), seconds in train(args, fast_job(P, S, n, *model), strategy)[1].items():
                key = role, "loop" if thread == pid else "other"
                sums[key] = sums.get(key, 0) + seconds
            runs.append(sums)
        lowest.append({key: min(run.get(key, 0) for run in runs) for key in runs[0]})
    return {key: (lowest[1][key] - lowest[0].get(key, 0)) / (updates[1] - updates[0]) / P * 1e6 for key in lowest[1]}


def command_constants(args):
    tiny, big = (lambda slices: (64, [64], 16384 // slices)), (1024, [1024, 1024], 65536)
    cases = ((8, 1, (200, 1700), "17 kB in 2 slices", tiny(1), "bsp"), (8, 4, (200, 1700), "17 kB in 5", tiny(4), "bsp"),
             (8, 16, (100, 900), "17 kB in 17", tiny(16), "bsp"), (32, 1, (50, 450), "17 kB in 2", tiny(1), "bsp"),
             (4, 1, (20, 170), "8.4 MB in 129", big, "bsp"), (4, 1, (20, 170), "8.4 MB in 129", big, "bsp:bits=4/8"))
    print("| workers | servers | model | strategy | chief's event loop | chief's store | a worker's event loop |\n|---:|---:|---|---|---:|---:|---:|")
    for P, S, updates, name, model, strategy in cases:
        cost = spent(args, P, S, updates, model, strategy)
        print(f"| {P} | {S} | {name} | {strategy} | {cost['chief', 'loop']:.0f} us | {cost['chief', 'other']:.0f} us | "
              f"{cost['worker', 'loop']:.0f} us |", flush=True)


def command_memory(args):
    """Four servers, four workers, a model of 67 MB."""
    print("| slice | chief | each other server |\n|---:|---:|---:|")
    for slice_bytes in (1 << 16, 1 << 22):
        resident = train(args, fast_job(4, 4, 20, 4096, [4096], slice_bytes), "bsp")[2]
        most = {role: max(held for (which, _), held in resident.items() if which == role) for role in ("chief", "server")}
        print(f"| {slice_bytes >> 10} KiB | {most['chief'] / 1e6:.0f} MB | {most['server'] / 1e6:.0f} MB |", flush=True)


def command_cells(args):
    """The standard cells by the cost model: samples/s, to be compared with docs/results."""
    four = Load(109_386, ((1000, 2), (500, 1), (250, 1)), 0.002, 32, 0.0002)
    eight = Load(109_386, ((2000, 2), (1000, 3), (500, 1), (250, 2)), 0.002, 16, 0.0002)
    names = ("bsp", "lb-bsp", "hps", "grouped", "multistep")
    print("| cell |", " | ".join(names), "|\n|---|" + "---:|" * len(names))
    for cell, load, P, link in (("4421-cheap", four, 4, 134.63e6), ("4421-heavy", four, 4, 13.463e6), ("8w-heavy", eight, 8, 53.036e6)):
        wire = Wire(load, P, 1, link, 2 * link, 65536)
        rates = [P * load.batch * (16 if name == "multistep" else 1) / period(name, wire)[0] for name in names]
        print(f"| {cell} |", " | ".join(f"{rate:,.0f}" for rate in rates), "|")


def command_check(args):
    """Emulated devices and links, real gradients and processes."""
    slow = Load(values=2_100_226, speeds=((40, 2), (20, 1), (10, 1)), batch=8, latency=0.0002)
    mlp, noise = 'kind = "mlp"\nhidden = [1024, 1024]', 'kind = "noise"\nclasses = 2\npicture = [1, 32, 32]'
    tiny = Load(values=4_290, speeds=((1000, 1),), overhead=0.02, batch=1, latency=0.0002)
    mlp0, noise0 = 'kind = "mlp"\nhidden = [64]', 'kind = "noise"\nclasses = 2\npicture = [1, 8, 8]'
    cases = [(slow, mlp, noise, 65536, 200e6, 4, 1, "bsp", 16), (slow, mlp, noise, 65536, 200e6, 4, 1, "lb-bsp", 30),
             (slow, mlp, noise, 65536, 200e6, 8, 1, "lb-bsp", 20), (slow, mlp, noise, 65536, 200e6, 8, 4, "lb-bsp", 30),
             (slow, mlp, noise, 65536, 200e6, 8, 1, "hps", 60), (slow, mlp, noise, 65536, 200e6, 8, 4, "hps", 60),
             (slow, mlp, noise, 65536, 200e6, 8, 1, "grouped", 50), (slow, mlp, noise, 65536, 200e6, 8, 1, "multistep:steps=4", 100),
             (tiny, mlp0, noise0, 16384, 1.25e9, 8, 1, "bsp", 200), (tiny, mlp0, noise0, 4096, 1.25e9, 8, 4, "bsp", 200),
             (tiny, mlp0, noise0, 16384, 1.25e9, 32, 1, "bsp", 200), (tiny, mlp0, noise0, 16384, 125e6, 8, 1, "bsp", 200),
             (tiny, mlp0, noise0, 16384, 125e6, 32, 1, "bsp", 200), (tiny, mlp0, noise0, 2048, 125e6, 16, 8, "bsp", 200)]
    print("| model | links | workers | servers | strategy | paper | simulated | real | simulated/real | paper/real |\n"
          "|---:|---:|---:|---:|---|---:|---:|---:|---:|---:|")
    for load, model, data, slice_bytes, line, P, S, strategy, updates in cases[args.first:args.last]:
        H = steps_of(strategy) if "multistep" in strategy else 1
        text = job(load, P, S, line, line, slice_bytes, updates, model, data)
        took = period(strategy.split(":")[0], Wire(load, P, S, line, line, slice_bytes), H)[0]
        chief = CHIEF_STEP + (S - 1) * CHIEF_SERVER + 2 * math.ceil(load.bytes / slice_bytes / S) * LOOP_SLICE
        paper = P * load.batch * H / (took + P * chief)
        virtual = simulate(args, text, strategy)[0]
        real = max(train(args, text, strategy)[0] for _ in range(args.repeats))
        print(f"| {load.bytes / 1e6:.3g} MB | {line / 1e6:.0f} MB/s | {P} | {S} | {strategy} | {paper:.4g} | {virtual:.4g} | "
              f"{real:.4g} | {virtual / real:.2f} | {paper / real:.2f} |", flush=True)


def numbers(text):
    return [float(x) if "." in x else int(x) for x in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motley", default="build/motley")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("simulate", "job", "predict", "chiefs"):
        one = commands.add_parser(name)
        tables = name in ("predict", "chiefs")
        one.add_argument("--workers", type=numbers, default=[8, 64, 512, 4096] if tables else [8])
        one.add_argument("--servers", type=numbers, default=[1])
        one.add_argument("--gbit", type=numbers, default=[10, 25, 100] if name == "predict" else [25])
        one.add_argument("--batch", type=int, default=64, help="samples of an average worker and step")
        one.add_argument("--slice", type=int, default=65536, help="bytes of floats")
        one.add_argument("--detail", type=float, default=25, help="Gbit/s")
        one.add_argument("--updates", type=int, default=60)
        one.add_argument("--strategies", type=lambda text: text.split(","),
                         default=["bsp", "lb-bsp", "hps", "grouped", "multistep:steps=16"])
    for name in ("constants", "check"):
        one = commands.add_parser(name)
        one.add_argument("--repeats", type=int, default=2)
        one.add_argument("--first", type=int, default=0)
        one.add_argument("--last", type=int, default=99)
    commands.add_parser("cells")
    commands.add_parser("memory")
    args = parser.parse_args()
    if args.command == "job":
        line = args.gbit[0] / 8 * 1e9
        print(job(Load(batch=args.batch), args.workers[0], args.servers[0], line, line, args.slice, args.updates))
    else:
        globals()["command_" + args.command](args)


if __name__ == "__main__":
    main()
