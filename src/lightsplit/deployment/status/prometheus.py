"""A picture of a run in Prometheus' text format."""

from collections.abc import Callable, Iterable
from typing import Any

from lightsplit.extras import require

_NUMBERS = {  # key of the picture: kind, name and help text of the metric
    "turns": ("counter", "turns", "Turns that have ended."),
    "steps": ("counter", "steps", "Training steps of all clients."),
    "samples": ("counter", "samples", "Samples of all steps."),
    "computing_seconds": (
        "counter",
        "computing_seconds",
        "Seconds that the server has computed steps.",
    ),
    "expected_clients": ("gauge", "expected_clients", "Clients that the run needs."),
    "checkpoint_age_seconds": (
        "gauge",
        "checkpoint_age_seconds",
        "Seconds since the last checkpoint.",
    ),
    "resident_bytes": ("gauge", "resident_memory_bytes", "Memory of the process."),
    "uptime_seconds": ("gauge", "uptime_seconds", "Seconds since the server started."),
}


class RunCollector:
    """Turns the newest picture into metrics whenever Prometheus asks.

    Args:
        picture: returns the newest picture.
    """

    def __init__(self, picture: Callable[[], dict[str, Any]]) -> None:
        self._picture = picture
        self._core = _library("prometheus_client.core")
        self._registry = _library("prometheus_client").CollectorRegistry()
        self._registry.register(self)

    def text(self) -> bytes:
        """Return all metrics as Prometheus reads them."""
        page: bytes = _library("prometheus_client").generate_latest(self._registry)
        return page

    def describe(self) -> Iterable[Any]:
        """Return nothing: the metrics are not known before the run is."""
        return []

    def collect(self) -> Iterable[Any]:
        """Yield every metric of the run."""
        picture = self._picture()
        for key, (kind, name, text) in _NUMBERS.items():
            if picture.get(key) is not None:
                yield self._family(kind, name, text, [((), picture[key])])
        yield from self._by_label(picture)
        yield from self._by_client(picture.get("clients", []))
        is_over = float(picture.get("finished") is not None)
        yield self._family("gauge", "finished", "1 after the run.", [((), is_over)])
        yield from self._figures(picture.get("history", []))

    def _by_label(self, picture: dict[str, Any]) -> Iterable[Any]:
        counted = {k: v for k, v in picture.get("bytes", {}).items() if k != "total"}
        for name, text, label, values in (
            ("bytes", "Bytes of all clients by kind.", "kind", counted),
            (
                "refused",
                "Refusals by reason.",
                "reason",
                picture.get("refusals", {}),
            ),
        ):
            samples = [((key,), value) for key, value in values.items()]
            yield self._family("counter", name, text, samples, (label,))
        flagged = sum(bool(one["flagged"]) for one in picture.get("verdicts", []))
        text = "Recent verdicts that flag a client."
        yield self._family("gauge", "flagging_verdicts", text, [((), flagged)])

    def _by_client(self, clients: list[dict[str, Any]]) -> Iterable[Any]:
        for key, kind, name, text in (
            ("is_connected", "gauge", "connected", "1 while the client is there."),
            ("is_in_turn", "gauge", "in_turn", "1 while it is the client's turn."),
            ("steps", "counter", "client_steps", "Steps of the client."),
            (
                "waited_seconds",
                "counter",
                "client_waited_seconds",
                "Seconds that the client has waited for the others of its rounds.",
            ),
            ("loss", "gauge", "client_loss", "Loss that the client reported last."),
        ):
            samples = [
                ((one["name"],), float(one[key]))
                for one in clients
                if one[key] is not None
            ]
            yield self._family(kind, name, text, samples, ("client",))

    def _figures(self, history: list[dict[str, Any]]) -> Iterable[Any]:
        last = history[-1] if history else {}
        samples = [
            ((key.removeprefix("test_"),), value)
            for key, value in last.items()
            if key.startswith("test_") and value is not None
        ]
        text = "Figures of the last evaluation."
        yield self._family("gauge", "test", text, samples, ("figure",))

    def _family(
        self,
        kind: str,
        name: str,
        text: str,
        samples: Iterable[tuple[tuple[str, ...], float]],
        labels: tuple[str, ...] = (),
    ) -> Any:
        core = self._core
        make = core.CounterMetricFamily if kind == "counter" else core.GaugeMetricFamily
        family = make(f"lightsplit_{name}", text, labels=labels)
        for values, value in samples:
            family.add_metric(values, value)
        return family


def _library(module: str) -> Any:
    return require(module, extra="metrics", purpose="/metrics")
