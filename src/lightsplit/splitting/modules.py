"""The names of a model's modules and states."""

from functools import cached_property

from torch import nn


class ModuleNames:
    """All names of all modules of a model; a module may have several."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    @cached_property
    def paths(self) -> list[str]:
        """Every name of every module below the model."""
        named = self.model.named_modules(remove_duplicate=False)
        return [name for name, _ in named if name]

    @cached_property
    def first(self) -> dict[str, str]:
        """The first name of the module with a name."""
        firsts: dict[int, str] = {}
        return {
            name: firsts.setdefault(id(module), name)
            for name, module in self.model.named_modules(remove_duplicate=False)
        }

    def below(self, path: str) -> set[str]:
        """Return the first names of a module and of all modules inside it."""
        inside = self.model.get_submodule(path).named_modules(
            prefix=path, remove_duplicate=False
        )
        return {self.first[name] for name, _ in inside}

    def children(self, path: str) -> set[str]:
        """Return the first names of the modules directly inside a module."""
        prefix = f"{path}." if path else ""
        inside = self.model.get_submodule(path).named_children()
        return {self.first[f"{prefix}{name}"] for name, _ in inside}

    def is_list(self, path: str) -> bool:
        """Return whether a module only holds others and cannot be called."""
        module = self.model.get_submodule(path)
        return type(module).forward is nn.Module.forward

    @cached_property
    def first_states(self) -> dict[str, str]:
        """The first name of the parameter or saved buffer with a name."""
        firsts: dict[int, str] = {}
        return {
            name: firsts.setdefault(id(state), name)
            for name, state in self.model.state_dict(keep_vars=True).items()
        }

    def states_below(self, path: str) -> set[str]:
        """Return the first names of all states inside a module."""
        prefix = f"{path}." if path else ""
        named = self.first_states.items()
        return {first for name, first in named if name.startswith(prefix)}
