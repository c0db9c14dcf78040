"""What is public is listed: every module names its members, and every member exists and is its own."""

import importlib
import pkgutil
from types import ModuleType

import pytest

import flopwitness

NAMES = sorted(
    info.name
    for info in pkgutil.walk_packages(flopwitness.__path__, prefix="flopwitness.")
    if info.name != "flopwitness.__main__"
)


@pytest.fixture(params=["flopwitness", "flopwitness.__main__", *NAMES])
def module(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(request.param)


def test_modules_are_found() -> None:
    assert "flopwitness.measure.meter" in NAMES
    assert "flopwitness.cli.main" in NAMES


def test_every_member_is_listed_once_and_exists(module: ModuleType) -> None:
    listed = module.__all__
    assert isinstance(listed, list)
    assert len(set(listed)) == len(listed)
    assert [name for name in listed if not hasattr(module, name)] == []
    assert listed == sorted(listed, key=_order)


def _order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2), name


def test_nothing_private_is_listed(module: ModuleType) -> None:
    assert [name for name in module.__all__ if name.startswith("_") and not name.startswith("__")] == []


def test_what_is_listed_is_the_modules_own(module: ModuleType) -> None:
    borrowed = [
        name
        for name in module.__all__
        if getattr(getattr(module, name), "__module__", module.__name__).startswith("flopwitness")
        and getattr(getattr(module, name), "__module__", module.__name__) != module.__name__
    ]
    assert borrowed == []


def test_every_public_definition_is_listed(module: ModuleType) -> None:
    defined = {
        name
        for name, member in vars(module).items()
        if not name.startswith("_")
        and isinstance(member, type)
        and getattr(member, "__module__", "") == module.__name__
    }
    assert defined - set(module.__all__) == set()


def test_every_module_says_why_it_is_there(module: ModuleType) -> None:
    assert module.__doc__
    assert module.__doc__.strip()
