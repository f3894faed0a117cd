"""What can tell where a program's steps end, by how much it is to be believed."""

from enum import IntEnum


class Source(IntEnum):
    """What tells where steps end; the higher it is, the more it is to be believed."""

    DATALOADER = 1
    """Batches that are asked for, where nothing else is called."""
    INNER_MODULE = 2
    """Calls that repeat within one call of a module, as decoding within `forward` does."""
    MODULE_ANYWHERE = 3
    """The same module called again, but from another place."""
    MODULE = 4
    """The same module called again from the same place."""
    BACKWARD = 5
    """Passes backward of a program that updates its parameters itself."""
    SOME_OPTIMIZERS = 6
    """Steps of some optimizers, while others that were built may still come."""
    OPTIMIZER = 7
    """Steps of all optimizers that take part."""
    TOLD = 8
    """The program itself, through `selftime.watch` or a framework's callback."""

    @property
    def label(self) -> str:
        return _LABELS[self]

    @property
    def ends_steps(self) -> bool:
        """Whether its boundaries end a step; a module's call and a batch begin one."""
        return self >= Source.SOME_OPTIMIZERS

    @property
    def is_final(self) -> bool:
        """Whether no better source can come, but for the program itself."""
        return self >= Source.OPTIMIZER


_LABELS = {
    Source.DATALOADER: "DataLoader",
    Source.INNER_MODULE: "module calls",
    Source.MODULE_ANYWHERE: "module calls",
    Source.MODULE: "module calls",
    Source.BACKWARD: "backward passes",
    Source.SOME_OPTIMIZERS: "optimizer steps",
    Source.OPTIMIZER: "optimizer steps",
    Source.TOLD: "the program",
}
