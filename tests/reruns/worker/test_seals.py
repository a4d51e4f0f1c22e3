"""What was done to the harness inside a process is noticed by kind; pools and libraries are not."""

import gc
import signal
import sys
import threading
import time
import types
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from assets.reruns.worker import codes, control, holders, hooks, names, processes, subjects
from assets.reruns.worker.subjects import Plan


def changed(before: dict[str, names.Identity], now: dict[str, names.Identity]) -> set[str]:
    return {n for n in before if not names.same(before[n], now.get(n))} | (set(now) - set(before))


class TestNames:
    def test_every_loaded_module_of_the_worker_is_found_by_itself(self) -> None:
        package = names.__name__.rpartition(".")[0]
        loaded = {n for n in sys.modules if n.startswith(f"{package}.")}
        assert {f"{package}.{short}" for short in names.worker_modules()} == loaded
        assert {"control", "processes", "names"} <= set(names.worker_modules())

    def test_names_outside_are_those_that_the_code_uses(self) -> None:
        found = {place.name for place in names.outside_places()}
        assert {"time.perf_counter_ns", "builtins.len", "os.killpg", "secrets.token_hex"} <= found
        assert "builtins.str.split" in found  # a method of a class that is named
        assert "os.link" not in found  # nothing here makes links

    @pytest.mark.parametrize("name", ["perf_counter_ns", "monotonic"])
    def test_a_replaced_clock_is_named(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        before = names.identities()
        monkeypatch.setattr(time, name, lambda: 0)
        assert f"time.{name}" in changed(before, names.identities())

    def test_what_nobody_here_uses_may_be_replaced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = names.identities()
        monkeypatch.setattr("os.link", lambda *values: None)
        assert changed(before, names.identities()) == set()

    def test_code_that_is_replaced_twice_is_still_another(self) -> None:
        before = names.identities()
        honest = control.Conductor.start.__code__
        try:
            for _ in range(5):
                control.Conductor.start.__code__ = control.Conductor.start.__code__.replace()
            found = changed(before, names.identities())
        finally:
            control.Conductor.start.__code__ = honest
        assert found == {"harness.control.Conductor.start"}
        assert changed(before, names.identities()) == set()

    @pytest.mark.parametrize(
        ("holder", "name", "value"),
        [
            (processes, "select", types.ModuleType("select")),
            (control, "_clock", time.monotonic_ns),
            (control, "_SPIN_NS", 1),
            (codes, "__builtins__", {}),
            (control.Conductor, "wait", lambda self, seconds: True),
            (control.Conductor, "__getattribute__", lambda self, name: None),
            (processes, "_added", len),
        ],
    )
    def test_globals_constants_methods_and_additions(
        self, holder: Any, name: str, value: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = names.identities()
        monkeypatch.setattr(holder, name, value, raising=False)
        assert any(name in entry for entry in changed(before, names.identities()))

    def test_defaults_and_a_modules_class(self, monkeypatch: pytest.MonkeyPatch) -> None:
        before = names.identities()
        monkeypatch.setattr(control.Conductor.prepare, "__defaults__", (7,))
        monkeypatch.setattr(control, "__class__", type("Other", (types.ModuleType,), {}))
        found = changed(before, names.identities())
        assert {"harness.control.Conductor.prepare", "harness.control"} <= found


class TestHolders:
    @pytest.fixture
    def root(self) -> Any:
        stop = processes.Stop(deadline=0.0)
        child = processes.Child.__new__(processes.Child)  # there is no process behind it
        vars(child).update(pid=0, _stop=stop, _token="")
        return subjects.Subject("x", child, Path(), 1.0)

    def test_an_untouched_object_holds_nothing_foreign(self, root: Any) -> None:
        assert holders.foreign(root) == []

    def test_a_method_on_an_instance(self, root: Any) -> None:
        root.child.ask = lambda command, timeout_s: None
        assert any("Child.ask hides a method" in f for f in self.of(root))

    def test_another_class_and_another_object(self, root: Any) -> None:
        before = holders.held(root)
        root.child.__class__ = type("Child", (processes.Child,), {"__module__": "main"})
        assert changed(before, holders.held(root))
        root.child = types.SimpleNamespace()
        assert changed(before, holders.held(root))

    def test_a_captured_function(self, root: Any) -> None:
        root.series.clock = time.perf_counter_ns
        before = holders.held(root)
        root.series.clock = time.monotonic_ns
        assert changed(before, holders.held(root)) == {"Subject.series.clock"}

    def test_a_function_in_a_container(self, root: Any) -> None:
        root.series.commands = {"verify": time.perf_counter_ns}
        before = holders.held(root)
        root.series.commands["verify"] = lambda request: {"replaced": []}
        assert changed(before, holders.held(root)) == {"Subject.series.commands['verify']"}

    def test_an_object_of_a_strangers_class(self, root: Any) -> None:
        stranger = type("List", (list,), {"__module__": "solution"})
        root.series.late = stranger()
        assert holders.foreign(root) == ["Subject.series.late is a List from solution"]

    def test_a_weak_reference_with_a_callback(self, root: Any) -> None:
        without = weakref.ref(root.series)
        assert holders.foreign(root) == []
        watching = weakref.ref(root.series, print)
        assert holders.foreign(root) == ["Subject.series is watched by a weak reference"]
        assert without() is watching()

    def test_slots_are_looked_into(self) -> None:
        class Slotted:
            __slots__ = ("left", "right")

        slotted = Slotted()
        slotted.left = len  # type: ignore[attr-defined]
        assert holders.attributes(slotted) == {"left": len}

    @staticmethod
    def of(root: Any) -> list[str]:
        return [entry.replace("Subject.child", "Child") for entry in holders.foreign(root)]


class TestHooks:
    @pytest.fixture(autouse=True)
    def _quiet(self) -> Iterator[None]:
        assert [f for f in hooks.active() if "trace" not in f and "monitoring" not in f] == []
        yield
        signal.setitimer(signal.ITIMER_REAL, 0)

    def test_a_profile_function(self) -> None:
        sys.setprofile(lambda *values: None)
        try:
            found = hooks.active()
        finally:
            sys.setprofile(None)
        assert any(entry.startswith("profile function set") for entry in found)

    def test_a_frame_that_is_traced(self) -> None:
        frame = sys._getframe()
        frame.f_trace = lambda *values: None
        try:
            assert any("frame traced" in entry for entry in hooks.active())
        finally:
            frame.f_trace = None

    def test_an_interval_timer_and_its_handler(self) -> None:
        before = hooks.handlers()
        former = signal.signal(signal.SIGALRM, lambda *values: None)
        try:
            signal.setitimer(signal.ITIMER_REAL, 100)
            assert "real interval timer" in hooks.active()
            assert changed(before, hooks.handlers()) == {"handler of signal 14"}
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, former)

    def test_a_callback_of_the_collector(self) -> None:
        before = hooks.collector_callbacks()
        gc.callbacks.append(_collected)
        try:
            assert any("_collected" in n for n in changed(before, hooks.collector_callbacks()))
        finally:
            gc.callbacks.remove(_collected)

    def test_a_pool_that_waits_is_not_restless_and_a_thread_that_watches_is(self) -> None:
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.001):
                pass

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(abs, range(8)))
            assert hooks.restless_threads() == []
            thread = threading.Thread(target=watch, name="spy")
            thread.start()
            try:
                found = hooks.restless_threads()
            finally:
                over.set()
                thread.join()
        assert len(found) == 1
        assert "'spy'" in found[0]


def _collected(phase: str, details: dict[str, int]) -> None:
    return None


def test_a_plan_is_no_holder_of_functions() -> None:
    assert holders.held(Plan(1, 1, frozenset(), frozenset())) == {"Plan type": (Plan,)}
