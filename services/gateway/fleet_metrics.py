"""What all processes share, as metrics: rows left to do, and the tallies that processes add up.

Workers answer no HTTP: what they count they add to tallies in Postgres, in the transaction that it
happens in, and every gateway tells the same of them. `TALLIES` names them all, so that a counter is
there, without a sample, before the first time.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from sqlalchemy import RowMapping

from shared.foundation import stages
from shared.jobs import counters as fleet_counters
from shared.platform.spend import budget_queries


@dataclass(frozen=True, slots=True)
class CounterSpec:
    """A counter (or gauge) of the fleet. A tally's label holds the labels' values, joined by colons."""

    help: str
    labels: tuple[str, ...] = ("kind",)
    metric_type: type[CounterMetricFamily | GaugeMetricFamily] = CounterMetricFamily


FLEET_COUNTERS: Mapping[str, CounterSpec] = {
    "job_claims": CounterSpec("Rows claimed by workers, by stage."),
    "job_retries": CounterSpec("Claims that were not a row's first, by stage."),
    "job_deaths": CounterSpec("Rows given up on, by stage."),
    "enrichments": CounterSpec("Entries whose enrichment ended, by how."),
    "sweep_repairs": CounterSpec("What the sweep mended or deleted, by what it was."),
    "dream_runs": CounterSpec("Dream runs that ended."),
    "dream_passes": CounterSpec("Dream passes that ended, by pass and how."),
    "dream_seconds": CounterSpec("Seconds that dream passes took, by pass."),
    "dream_changes": CounterSpec("Entries that dreams changed, by how and why."),
    "dream_rejections": CounterSpec("Proposals of dreams that were refused, by reason."),
    "dream_tokens": CounterSpec("Tokens that dreams used, input or output."),
    "dream_cost_usd": CounterSpec("What dreams cost in USD, by pass."),
    "spend_tokens": CounterSpec("Tokens that models used.", ("type", "purpose", "model")),
    "spend_cost_usd": CounterSpec("What models cost in USD.", ("purpose", "model")),
    "budget_refusals": CounterSpec("Calls of a model that a budget refused.", ("purpose",)),
    # Budgets go by an id that was drawn for them: whoever reads metrics need not know the tenants.
    budget_queries.USED_RATIO_METRIC: CounterSpec(
        "Part of a budget that its window has used.", ("scope", "period", "budget"), GaugeMetricFamily
    ),
}
_STAGES = {
    "pending": "Rows left to do.",
    "running": "Rows in a worker's hands.",
    "dead": "Rows given up on.",
    "oldest_age_seconds": "Lag of a stage: the age of its oldest row left to do.",
}


def of_stages(rows: Iterable[RowMapping]) -> list[Metric]:
    """Return the gauges of each stage, of those without rows too, and the backlog of each queue."""
    found = {row["stage"]: row for row in rows}
    families = []
    for name, told in _STAGES.items():
        family = GaugeMetricFamily(f"loci_jobs_{name}", told, labels=["stage"])
        for stage in stages.STAGES:
            family.add_metric([stage], float(found[stage][name]) if stage in found else 0.0)
        families.append(family)
    return [*families, _backlog(found)]


def _backlog(found: Mapping[str, RowMapping]) -> Metric:
    told = "Rows of a queue that are due or in work: what its workers are scaled by."
    family = GaugeMetricFamily("loci_queue_backlog_jobs", told, labels=["queue"])
    counts: Counter[str] = Counter()
    for name, stage in stages.STAGES.items():
        counts[stages.queue_of(stage.task)] += found[name]["backlog"] if name in found else 0
    for queue, rows in sorted(counts.items()):
        family.add_metric([queue], rows)
    return family


def of_tallies(rows: Sequence[RowMapping], alert: float) -> list[Metric]:
    """Return what processes have added up; `alert` is the part of a budget from which it counts as near."""
    families = {name: _family(name) for name in FLEET_COUNTERS}
    for row in rows:
        name = row["name"]
        if name in families:
            values = row["labels"].split(":", len(FLEET_COUNTERS[name].labels) - 1)
            families[name].add_metric(values, float(row["value"]))
    return [*families.values(), _alerts(families[budget_queries.USED_RATIO_METRIC], alert), _freshness(rows)]


def _family(name: str) -> CounterMetricFamily | GaugeMetricFamily:
    tally = FLEET_COUNTERS[name]
    return tally.metric_type(f"loci_{name}", tally.help, labels=tally.labels)


def _alerts(ratios: Metric, alert: float) -> Metric:
    told = "Budgets whose window has used as much as LOCI_BUDGET_ALERT says, or more."
    reached = [one for one in ratios.samples if one.value >= alert]
    return GaugeMetricFamily("loci_budget_alerts", told, value=len(reached))


def _freshness(rows: Iterable[RowMapping]) -> Metric:
    told = "Seconds from a write's commit until it is found, by its keywords and by its vector."
    family = HistogramMetricFamily(f"loci_{fleet_counters.TIME_TO_SEARCHABLE}", told, labels=["channel"])
    totals = {(row["name"], row["labels"]): float(row["value"]) for row in rows}
    for by in ("keyword", "vector"):
        seen, buckets = 0.0, []
        for bound in (*fleet_counters.BOUNDS, float("inf")):
            seen += totals.get((fleet_counters.TIME_TO_SEARCHABLE, f"{by}:{bound}"), 0.0)
            buckets.append(("+Inf" if bound == float("inf") else str(bound), seen))
        family.add_metric([by], buckets, totals.get((fleet_counters.TOTAL, by), 0.0))
    return family
