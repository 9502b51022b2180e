"""Training in two or more processes of one thread each.

On a machine that does other work too this is far quicker than threads, which wait for each other in every operation.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.multiprocessing.spawn import start_processes


def _work(rank: int, world: int, meeting: str, work: Callable[..., None], args: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)
    work(rank, world, *args)
    distributed.destroy_process_group()


def run(work: Callable[..., None], world: int, *args: Any) -> None:
    """Call work(rank, world, *args) in `world` processes, which share what is in memory already."""
    with tempfile.TemporaryDirectory() as folder:
        meeting = str(Path(folder) / "meeting")
        start_processes(  # type: ignore[no-untyped-call]
            _work, (world, meeting, work, args), nprocs=world, start_method="fork"
        )


def average_gradients(parameters: Sequence[torch.nn.Parameter], world: int) -> None:
    flat = torch.cat([p.grad.reshape(-1) for p in parameters if p.grad is not None])
    distributed.all_reduce(flat)
    flat /= world
    at = 0
    for p in parameters:
        if p.grad is not None:
            p.grad.copy_(flat[at : at + p.grad.numel()].view_as(p.grad))
            at += p.grad.numel()


class Progress:
    """How much of the schedule is done, by steps or by time, whichever is further; all processes agree."""

    def __init__(self, steps: int, minutes: float) -> None:
        self.steps = steps
        self.seconds = 60 * minutes
        self.began = time.monotonic()
        self.done = 0.0

    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def after(self, step: int) -> float:
        share = torch.tensor(max(step / self.steps, self.elapsed() / self.seconds if self.seconds else 0.0))
        distributed.all_reduce(share, op=distributed.ReduceOp.MAX)
        self.done = min(1.0, float(share))
        return self.done


def set_rates(optimizer: torch.optim.Optimizer, done: float, warm: float = 0.06) -> None:
    """Let every group's rate rise linearly for a share of the run, then fall linearly to zero at its end."""
    factor = min((done + 1e-4) / warm, (1 - done) / (1 - warm))
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * factor


def descend(
    rank: int,
    world: int,
    batches: Sequence[Sequence[int]],
    loss_of: Callable[[Sequence[int]], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    minutes: float,
    checkpoint: Callable[[], None],
) -> None:
    """Train over the batches, each process on its share of each; process 0 reports, and calls `checkpoint` at times."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    progress = Progress(len(batches), minutes)
    total, step, n_pairs = 0.0, 0, 0
    while progress.done < 1:
        set_rates(optimizer, progress.done)
        loss = loss_of(batches[step][rank::world])
        loss.backward()  # type: ignore[no-untyped-call]
        average_gradients(parameters, world)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        n_pairs += len(batches[step])
        step += 1
        progress.after(step)
        total += loss.item()
        if rank == 0 and step % 50 == 0:
            pace = n_pairs / progress.elapsed()
            print(f"step {step} done {progress.done:.3f} loss {total / 50:.3f} {pace:.0f} pairs/s", flush=True)
            total = 0.0
        if rank == 0 and step % 500 == 0:
            checkpoint()
    if rank == 0:
        checkpoint()
        print(f"{step} steps, {n_pairs} pairs in {progress.elapsed():.0f} s", flush=True)
