"""Checkpoints: a run that was killed goes on from the end of an epoch, bit for bit on a CPU.

Its random state is its seeds and the number of the epoch, so the end of an epoch holds all of it.
"""

import json
import time
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from ruleout.labels.atomic import atomic_write, write_text
from ruleout.labels.errors import InputError
from ruleout.training.stack import Block, Plan, Stack

_SCHEMA = 1


class Checkpoint:
    """The folder of one run, made if absent; one whose key (of the record) differs is refused."""

    def __init__(self, folder: Path, key: str, seconds: float) -> None:
        self.folder, self.key, self.seconds = folder, key, seconds
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError("a checkpoint is a folder", "name another", file=folder) from error
        self._last = time.monotonic()

    def plan(self, planned: Plan) -> Plan:
        """Return the plan of the run that was killed, or note the one given."""
        file = self.folder / "run.json"
        if not file.exists():
            self.note(planned)
            return planned
        try:
            known = json.loads(file.read_text())
            blocks = [Block(tuple(t), a, b) for t, a, b in known["blocks"]]
            size, key, schema = tuple(known["size"]), known["key"], known["schema"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._refused("cannot be read", "remove it to start anew") from error
        if schema > _SCHEMA:
            raise self._refused("was written by a newer ruleout", "update ruleout, or remove it")
        if key != self.key:
            other = "belongs to a run with other data or settings"
            raise self._refused(other, "choose another folder")
        return Plan(size, blocks)

    def _refused(self, problem: str, remedy: str) -> InputError:
        return InputError(f"this checkpoint {problem}", remedy, file=self.folder)

    def note(self, planned: Plan) -> None:
        """Write down which models train together: other stacks would round differently."""
        known = {"schema": _SCHEMA, "key": self.key, **planned._asdict()}
        write_text(self.folder / "run.json", json.dumps(known, indent=1))

    def _file(self, block: Block) -> Path:
        trials = "-".join(map(str, block.trials))
        return self.folder / f"trials-{trials}_models-{block.start}-{block.stop}.safetensors"

    def save(self, block: Block, stack: Stack, *, now: bool = False) -> None:
        """Write the state of a stack, if it is time or must be done now."""
        if not now and time.monotonic() - self._last < self.seconds:
            return
        tensors = {name: value.cpu().contiguous() for name, value in stack.tensors().items()}
        facts = {"key": self.key, "epoch": str(stack.epoch)}
        with atomic_write(self._file(block)) as out:
            out.write(save(tensors, facts))
        self._last = time.monotonic()

    def restore(self, block: Block, stack: Stack) -> None:
        """Bring a stack to where its last checkpoint was, if there is one."""
        file = self._file(block)
        if not file.exists():
            return
        try:
            with safe_open(file, "pt") as held:
                facts: dict[str, Any] = held.metadata() or {}
                tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
            if facts.get("key") != self.key:
                raise self._refused("holds the file of another run", "choose another folder")
            stack.restore(tensors, int(facts["epoch"]))
        except (SafetensorError, KeyError, RuntimeError) as error:
            remedy = "remove it to start anew"
            raise InputError("this checkpoint is damaged", remedy, file=file) from error
