#!/usr/bin/env python3
"""PyTorch's DistributedDataParallel (DDP) over gloo, on one NVIDIA GPU that MPS splits into unlike partitions: the baseline with which
Motley is compared. Same ResNet-18 for small pictures, same data and normalisation, bf16, SGD with momentum, same learning-rate schedule.

  ddp.py speed --partitions 40,30,20,10 --global 1024 --shares equal --seconds 4
      Samples per second on random 3x32x32 pictures of 100 classes: first every worker for itself, all at the same time ("alone"), then
      together by DDP. "ratio" is what DDP makes of the sum of the workers alone.

  ddp.py train --partitions 40,30,20,10 --global 1024 --shares proportional --target 0.92 --lr 0.1 --schedule cosine --warmup 1
      Fashion-MNIST until the test accuracy is reached, at most --max-epochs. One clock runs only while all of them train, one always.

  ddp.py local-check
      Both on the CPU, with two workers, noise and a narrow model: shows in seconds that the script works. Needs neither GPU nor data.

--shares says how each global batch is cut: equal; proportional (to the partitions' percentages); ddp-alone (to the speeds that the workers
reach alone, which are measured first); or the workers' batches themselves, as in 400,300,200,124.

Each run prints one line of JSON on stdout; all else goes to stderr. Needs torch (2.6 or later) and, with a GPU, nvidia-cuda-mps-control.
"""
import argparse
import collections
import contextlib
import ctypes
import datetime
import gzip
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

WARM_UP_STEPS = 15
libc = ctypes.CDLL(None)


# The model: resnet18 of src/learn/torch/resnet.cpp. Its norms have torch's defaults (momentum 0.1, epsilon 1e-5). -------------------------

def conv(inputs, outputs, size, stride, gain):
    made = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
    nn.init.normal_(made.weight, 0, math.sqrt(gain / (inputs * size * size)))  # He et al. 2015
    return made


class Unit(nn.Module):
    """A residual unit; where it changes the number of channels it halves the picture, and its shortcut is a convolution of one pixel."""

    def __init__(self, inputs, outputs):
        super().__init__()
        stride = 1 if inputs == outputs else 2
        self.conv1, self.norm1 = conv(inputs, outputs, 3, stride, 2), nn.BatchNorm2d(outputs)
        self.conv2, self.norm2 = conv(outputs, outputs, 3, 1, 2), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if inputs != outputs:
            self.shortcut = nn.Sequential(conv(inputs, outputs, 1, stride, 1), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm1(self.conv1(x)), inplace=True)
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x), inplace=True)


class ResNet18(nn.Module):
    """One convolution, four layers of two units, the mean over the pixels, one linear layer."""

    def __init__(self, channels, classes, width):
        super().__init__()
        self.stem, self.norm = conv(channels, width, 3, 1, 2), nn.BatchNorm2d(width)
        sizes = [width] + [width << layer for layer in range(4) for _ in range(2)]
        self.units = nn.Sequential(*(Unit(inputs, outputs) for inputs, outputs in zip(sizes, sizes[1:])))
        self.head = nn.Linear(sizes[-1], classes)
        nn.init.normal_(self.head.weight, 0, math.sqrt(1 / sizes[-1]))
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        return self.head(self.units(F.relu(self.norm(self.stem(x)), inplace=True)).flatten(2).mean(2))


# Data: all of it on the device, normalised, bf16, pixels before channels (channels_last without a copy) -----------------------------------

def read_idx(folder, name):
    path = pathlib.Path(folder) / name
    content = path.read_bytes() if path.exists() else gzip.decompress(pathlib.Path(f"{path}.gz").read_bytes())
    if content[:3] != b"\0\0\x08":
        raise SystemExit(f"{path}: expected an idx file of bytes")
    sizes = [int.from_bytes(content[at:at + 4], "big") for at in range(4, 4 + 4 * content[3], 4)]
    return torch.frombuffer(bytearray(content), dtype=torch.uint8, offset=4 + 4 * len(sizes)).view(sizes)


def fashion_mnist(folder, device):
    """Training and test pictures with their labels; mean and deviation are those of the training pixels."""
    if folder == "noise":
        made = torch.Generator().manual_seed(1)
        parts = [(torch.randint(0, 256, (n, 28, 28), generator=made), torch.randint(0, 10, (n,), generator=made)) for n in (512, 128)]
    else:
        parts = [[read_idx(folder, f"{part}-{what}-ubyte") for what in ("images-idx3", "labels-idx1")] for part in ("train", "t10k")]
    pixels = parts[0][0].to(device).float()
    mean, deviation = pixels.mean(), pixels.std(unbiased=False)
    return [(((images.to(device) - mean) / deviation).unsqueeze(3).bfloat16(), labels.to(device).long()) for images, labels in parts]


def batches_of(config, speeds=None):
    """Each worker's part of a global batch. By weights: the largest remainders are rounded up."""
    total, partitions, shares = config["global"], config["partitions"], config["shares"]
    if isinstance(shares, list):
        parts = shares
    else:
        weights = [1] * len(partitions) if shares == "equal" else speeds if shares == "ddp-alone" and speeds else partitions
        exact = [total * weight / sum(weights) for weight in weights]
        parts = [int(part) for part in exact]
        for at in sorted(range(len(parts)), key=lambda i: parts[i] - exact[i])[:total - sum(parts)]:
            parts[at] += 1
    if len(parts) != len(partitions) or sum(parts) != total or min(parts) < 1:
        raise SystemExit(f"--shares: found {parts}, expected a sample or more for each of {len(partitions)} workers, {total} in all")
    return parts


# A worker ---------------------------------------------------------------------------------------------------------------------------------

class Worker:
    def __init__(self, rank, config):
        self.rank, self.config, self.world = rank, config, len(config["partitions"])
        self.device, self.on_gpu = torch.device(config["device"]), config["device"] == "cuda"
        torch.backends.cudnn.benchmark = True
        torch.manual_seed(config["seed"])
        dist.init_process_group("gloo", init_method=f"file://{config['folder']}/rendezvous", rank=rank, world_size=self.world,
                                timeout=datetime.timedelta(seconds=config["timeout"]))
        speed = config["mode"] == "speed"
        self.model = ResNet18(3 if speed else 1, 100 if speed else 10, config["width"])
        self.model.to(self.device, memory_format=torch.channels_last).train()
        if speed:
            self.images = torch.randn(config["pictures"], 32, 32, 3, device=self.device).bfloat16()
            self.labels = torch.randint(0, 100, (config["pictures"],), device=self.device)
        else:
            (self.images, self.labels), self.test = fashion_mnist(config["data"], self.device)
        self.initial = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.restart()

    def restart(self):
        """Back to the initial weights, no momentum."""
        self.model.load_state_dict(self.initial)
        options = {name: self.config[name] for name in ("lr", "momentum", "nesterov", "weight_decay")}
        self.optimizer = torch.optim.SGD(self.model.parameters(), **options, **({"fused": self.config["fused"]} if self.on_gpu else {}))

    def together(self):
        # Running statistics are not broadcast: training does not read them, and rank 0, which evaluates, has the values that DDP would send.
        return nn.parallel.DistributedDataParallel(self.model, device_ids=[0] if self.on_gpu else None,
                                                   broadcast_buffers=False, gradient_as_bucket_view=True)

    def step(self, net, chosen, weight=1.0):
        """DDP averages over workers: with weight = batch * workers / global batch the average is the mean over the global batch."""
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            scores = net(self.images[chosen].permute(0, 3, 1, 2))
            loss = F.cross_entropy(scores, self.labels[chosen])
        (loss * weight).backward()
        self.optimizer.step()

    def settle(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def meet(self):
        """Waits until all workers have finished their work; returns the time."""
        self.settle()
        dist.barrier()
        return time.perf_counter()

    def gathered(self, value):
        values = [None] * self.world
        dist.all_gather_object(values, value)
        return values

    def some(self, batch):
        return torch.randint(0, len(self.labels), (batch,), device=self.device)

    def alone(self, batch):
        """Samples per second of each worker alone, while the others also compute alone."""
        for _ in range(WARM_UP_STEPS):
            self.step(self.model, self.some(batch))
        began, steps, in_flight = self.meet(), 0, collections.deque()
        while time.perf_counter() - began < self.config["seconds"]:
            self.step(self.model, self.some(batch))
            steps += 1
            if self.on_gpu:  # the host is at most two steps ahead, so that all stop at the same time
                in_flight.append(torch.cuda.Event())
                in_flight[-1].record()
                if len(in_flight) > 2:
                    in_flight.popleft().synchronize()
        self.settle()
        return self.gathered(steps * batch / (time.perf_counter() - began))

    def speed(self):
        total, tried = self.config["global"], batches_of(self.config)
        speeds = self.alone(tried[self.rank])
        batches = batches_of(self.config, speeds)
        mine = batches[self.rank]
        self.restart()
        net, weight = self.together(), mine * self.world / total
        for at in range(WARM_UP_STEPS):
            if at == WARM_UP_STEPS // 3:
                began = self.meet()
            self.step(net, self.some(mine), weight)
        each = (self.meet() - began) / (WARM_UP_STEPS - WARM_UP_STEPS // 3)
        steps = torch.tensor(max(3, math.ceil(self.config["seconds"] / each)))
        dist.broadcast(steps, 0)  # rank 0 decides
        began = self.meet()
        for _ in range(int(steps)):
            self.step(net, self.some(mine), weight)
        seconds = self.meet() - began
        return {"alone_batches": tried, "alone_samples_per_second": [round(speed, 1) for speed in speeds],
                "alone_sum": round(sum(speeds), 1), "batches": batches, "steps": int(steps), "seconds": round(seconds, 4),
                "step_ms": round(1e3 * seconds / int(steps), 3), "samples_per_second": round(int(steps) * total / seconds, 1),
                "ratio": round(int(steps) * total / seconds / sum(speeds), 4)}

    def rate(self, samples, epoch):
        """The same schedule as src/policy/lr_schedule.cpp."""
        config = self.config
        warm_up = config["warmup"] * epoch / config["global"]  # in global batches
        rate = config["lr"] * (min(1, (samples / config["global"] + 1) / warm_up) if warm_up > 0 else 1)
        if config["schedule"] == "cosine":
            shape = 0.5 * (1 + math.cos(math.pi * min(1, samples / (config["max_epochs"] * epoch))))
            rate *= config["final_fraction"] + (1 - config["final_fraction"]) * shape
        return rate

    def evaluate(self):
        """The test accuracy, computed by rank 0 and broadcast to all, which wait for it."""
        accuracy = torch.zeros((), dtype=torch.float64)
        if self.rank == 0:
            images, labels = self.test
            self.model.eval()
            with torch.no_grad(), torch.autocast(self.device.type, dtype=torch.bfloat16):
                hits = sum((self.model(some.permute(0, 3, 1, 2)).argmax(1) == wanted).sum()
                           for some, wanted in zip(images.split(1000), labels.split(1000)))
            self.model.train()
            accuracy += hits.item() / len(labels)
        dist.broadcast(accuracy, 0)
        return accuracy.item()

    def train(self):
        config, total, epoch = self.config, self.config["global"], len(self.labels)
        speeds = self.alone(batches_of(config)[self.rank]) if config["shares"] == "ddp-alone" else None
        batches = batches_of(config, speeds)
        first, mine = sum(batches[:self.rank]), batches[self.rank]
        weight = mine * self.world / total
        self.restart()
        net = self.together()
        for _ in range(WARM_UP_STEPS):  # not measured: cuDNN chooses its kernels, DDP its buckets
            self.step(net, self.some(mine), weight)
        self.evaluate()
        self.restart()
        # Each epoch is a permutation, the same for all; a batch may end one epoch and begin the next, so that all batches have the same size.
        steps = max(1, math.ceil(config["max_epochs"] * epoch / total))
        shuffle = torch.Generator().manual_seed(config["seed"])
        order = torch.cat([torch.randperm(epoch, generator=shuffle) for _ in range(math.ceil(steps * total / epoch))]).to(self.device)
        samples, seconds, every, curve, reached = 0, 0.0, config["evaluate_every"] * epoch, [], None
        due, began = every, self.meet()
        start = began
        for at in range(steps):
            for group in self.optimizer.param_groups:
                group["lr"] = self.rate(samples, epoch)
            self.step(net, order[at * total + first:at * total + first + mine], weight)
            samples += total
            if samples < due and at + 1 < steps:
                continue
            seconds += self.meet() - began
            accuracy = self.evaluate()
            curve.append((samples, round(seconds, 4), round(accuracy, 4), round(self.meet() - start, 4)))
            if self.rank == 0:
                print(f"{samples} samples, {seconds:.2f} s: {accuracy:.4f}", file=sys.stderr, flush=True)
            if accuracy >= config["target"] and reached is None:
                reached = curve[-1]
                if not config["go_on"]:
                    break
            due = every * (math.floor(samples / every) + 1)
            began = self.meet()
        sums = self.gathered(sum(parameter.double().sum().item() for parameter in self.model.parameters()))
        return {"batches": batches, "alone_samples_per_second": speeds, "reached": reached is not None,
                "seconds_to_target": reached and reached[1], "seconds_to_target_with_evaluations": reached and reached[3],
                "samples_to_target": reached and reached[0], "final_accuracy": curve[-1][2],
                "samples": samples, "seconds": round(seconds, 4), "samples_per_second": round(samples / seconds, 1), "curve": curve,
                "replicas_agree": len(set(sums)) == 1,
                "clock": "training steps only: stopped for all during evaluation, except with_evaluations and the last of each point of the "
                         "curve; loading and thrown-away first steps do not count"}


def work(rank, config):
    worker = Worker(rank, config)
    result = worker.speed() if config["mode"] == "speed" else worker.train()
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        device = torch.cuda.get_device_name() if config["device"] == "cuda" else "cpu"
        told = {key: value for key, value in config.items() if key not in ("folder", "timeout", "device")}
        with open(f"{config['folder']}/result.json", "w", encoding="utf-8") as file:
            json.dump({"system": "ddp-gloo", **told, **result, "device": device, "torch": torch.__version__}, file)


# The parent: partitions and processes -----------------------------------------------------------------------------------------------------

def start(command, environment):
    """Starts a process in its own process group; it is terminated when this process ends for any reason (1 is PR_SET_PDEATHSIG)."""
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr, start_new_session=True,
                            preexec_fn=lambda: libc.prctl(1, signal.SIGTERM))


def end(processes, patience=5.0):
    """Ends the process groups: SIGTERM first, then SIGKILL."""
    for sent in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            if process.poll() is None or sent == signal.SIGKILL:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, sent)
        deadline = time.monotonic() + patience
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.1, deadline - time.monotonic()))


@contextlib.contextmanager
def multi_process_service(folder):
    """Starts a private MPS daemon in `folder`; returns the environment for its clients."""
    places = {"CUDA_MPS_PIPE_DIRECTORY": f"{folder}/pipe", "CUDA_MPS_LOG_DIRECTORY": f"{folder}/log"}
    for place in places.values():
        os.mkdir(place)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("CUDA_MPS_")} | places
    service = start(["nvidia-cuda-mps-control", "-f"], environment)
    try:
        deadline = time.monotonic() + 30
        while not os.path.exists(f"{folder}/pipe/control"):
            if service.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("nvidia-cuda-mps-control: expected it to listen within 30 s")
            time.sleep(0.05)
        yield environment
    finally:
        if service.poll() is None:
            with contextlib.suppress(subprocess.TimeoutExpired, OSError):
                subprocess.run(["nvidia-cuda-mps-control"], input=b"quit\n", env=environment, stdout=sys.stderr, timeout=20, check=False)
                service.wait(20)
        end([service])


def run(config):
    """Starts the workers, waits until all have succeeded, and prints the result of rank 0."""
    batches_of(config)  # refuses impossible shares
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ddp-", ignore_cleanup_errors=True))
        on_gpu, world = config["device"] == "cuda", len(config["partitions"])
        environment = dict(stack.enter_context(multi_process_service(folder)) if on_gpu else os.environ)
        environment |= {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // world))}
        workers = []
        stack.callback(end, workers)  # before the service ends
        told = json.dumps(config | {"folder": folder})
        for rank, percentage in enumerate(config["partitions"]):
            own = environment | ({"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(percentage)} if on_gpu else {})
            workers.append(start([sys.executable, __file__, "worker", str(rank), told], own))
        deadline = time.monotonic() + config["timeout"]
        while (codes := [worker.poll() for worker in workers]) != [0] * world:
            if any(codes):
                raise SystemExit(f"a worker failed, its output is above; exit codes by rank: {codes} (None: still running)")
            if time.monotonic() > deadline:
                raise SystemExit(f"not done after {config['timeout']} s (--timeout)")
            time.sleep(0.05)
        print(pathlib.Path(folder, "result.json").read_text(encoding="utf-8"), flush=True)


# The command line -------------------------------------------------------------------------------------------------------------------------

def numbers(text):
    return [int(part) for part in text.split(",")]


def shares(text):
    return text if text in ("equal", "proportional", "ddp-alone") else numbers(text)


def parser():
    both = argparse.ArgumentParser(add_help=False)
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = top.add_subparsers(dest="mode", required=True, metavar="speed|train|local-check")

    def options(to, *rows):
        for name, kind, usual, words in rows:
            to.add_argument(name, type=kind, default=usual, help=f"{words} (default {usual})")

    options(both, ("--partitions", numbers, [40, 30, 20, 10], "percent of the GPU for each worker"),
            ("--global", int, 1024, "samples of a global batch"), ("--seconds", float, 4, "length of a measurement of speed"),
            ("--shares", shares, "equal", "equal, proportional, ddp-alone, or each worker's batch"),
            ("--width", int, 64, "channels of the first layer"), ("--seed", int, 0, "of weights and order"),
            ("--lr", float, 0.1, "learning rate"), ("--momentum", float, 0.9, "momentum of SGD"),
            ("--weight-decay", float, 5e-4, "weight decay of all parameters"),
            ("--timeout", float, 1800, "seconds after which a run is aborted"))
    both.add_argument("--nesterov", action=argparse.BooleanOptionalAction, default=True, help="Nesterov momentum, as Motley uses for all strategies")
    both.add_argument("--fused", action=argparse.BooleanOptionalAction, default=True, help="the optimizer's step in one kernel (GPU only)")
    both.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: without partitions, for trying the script")
    options(modes.add_parser("speed", parents=[both]), ("--pictures", int, 16384, "random pictures to choose from"))
    train = modes.add_parser("train", parents=[both])
    options(train, ("--data", str, "/usr/share/datasets/fashion-mnist", "folder of the four idx files, compressed or not; or noise"),
            ("--target", float, 0.92, "test accuracy"), ("--max-epochs", float, 12, "the end of training"),
            ("--evaluate-every", float, 0.25, "epochs between evaluations"),
            ("--warmup", float, 0, "epochs over which the rate rises from 0"),
            ("--final-fraction", float, 0, "cosine: final learning rate as a fraction of --lr"))
    train.add_argument("--schedule", choices=("constant", "cosine"), default="constant")
    train.add_argument("--go-on", action="store_true", help="train to --max-epochs even after the target is reached")
    modes.add_parser("local-check")
    return top


def stop(number, _):
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # a second signal must not interrupt the cleanup
    raise SystemExit(128 + number)


def main():
    if sys.argv[1:2] == ["worker"]:  # the script starts its workers this way
        return work(int(sys.argv[2]), json.loads(sys.argv[3]))
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, stop)
    top = parser()
    config = vars(top.parse_args())
    if config["mode"] == "local-check":
        small = "--device cpu --partitions 60,40 --global 64 --width 8 --seconds 0.5 --timeout 300".split()
        run(vars(top.parse_args(["train", *small, *"--shares proportional --data noise --max-epochs 0.25 --evaluate-every 0.125".split()])))
        run(vars(top.parse_args(["speed", *small, *"--shares ddp-alone --pictures 512".split()])))
    else:
        run(config)


if __name__ == "__main__":
    main()
