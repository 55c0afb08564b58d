"""Metrics of all processes: the jobs of each stage, and the fleet counters.

Workers serve no HTTP. They add to fleet counters in Postgres, in the transaction of the work that is
counted, and every gateway reports the same totals. `FLEET_COUNTERS` lists them all, so that a counter
is exported, without a sample, before its first event.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from sqlalchemy import RowMapping

from shared.foundation import stages
from shared.jobs import counters as fleet_counters
from shared.jobs.model_pauses import Pause
from shared.platform.spend import budget_queries
from shared.verification.judge_report import JudgeReport
from shared.verification.stored_calibration import CalibrationState


@dataclass(frozen=True, slots=True)
class CounterSpec:
    """A fleet counter or gauge as a metric. Postgres stores the values of `labels` joined by colons."""

    help: str
    labels: tuple[str, ...] = ("kind",)
    metric_type: type[CounterMetricFamily | GaugeMetricFamily] = CounterMetricFamily


FLEET_COUNTERS: Mapping[str, CounterSpec] = {
    "job_claims": CounterSpec("Jobs claimed by workers, by stage."),
    "job_retries": CounterSpec("Claims after a job's first, by stage."),
    "job_deaths": CounterSpec("Jobs that died after their last attempt, by stage."),
    "enrichments": CounterSpec("Memories whose enrichment ended, by outcome."),
    "summaries": CounterSpec("Summaries of conversations that were stored or given up, by outcome."),
    "skill_summaries": CounterSpec("Summaries of skills that were stored or given up, by outcome."),
    "documents": CounterSpec("Versions of documents that became searchable or failed, by outcome."),
    "promotions": CounterSpec("Snippets of scratchpads that were examined, by outcome."),
    "sweep_repairs": CounterSpec("Records that the sweep repaired or deleted, by step."),
    "dream_runs": CounterSpec("Dream runs that ended."),
    "dream_passes": CounterSpec("Dream passes that ended, by pass and outcome."),
    "dream_seconds": CounterSpec("Seconds that dream passes took, by pass."),
    "dream_changes": CounterSpec("Memories that dreams changed, by action and reason."),
    "dream_rejections": CounterSpec("Proposals of dreams that were rejected, by reason."),
    "dream_tokens": CounterSpec("Tokens that dreams used, input or output."),
    "dream_cost_usd": CounterSpec("Cost of dreams in USD, by pass."),
    "spend_tokens": CounterSpec("Tokens that models used.", ("type", "purpose", "model")),
    "spend_cost_usd": CounterSpec("Cost of models in USD.", ("purpose", "model")),
    "judge_verdicts": CounterSpec("Verdicts of the judge, `none` where it gave no clear one.", ("verdict",)),
    "budget_refusals": CounterSpec("Model calls that a budget refused.", ("purpose",)),
    # The label is a random id of the budget, so that readers of metrics don't learn the tenants' names.
    budget_queries.USED_RATIO_METRIC: CounterSpec(
        "Part of a budget that its current window has used.",
        ("scope", "period", "budget"),
        GaugeMetricFamily,
    ),
}
_STAGE_GAUGES = {
    "pending": "Jobs that are not done.",
    "running": "Jobs that a worker has claimed.",
    "dead": "Jobs that died after their last attempt.",
    "oldest_age_seconds": "Lag of a stage: the age of its oldest pending job.",
}


def stage_metrics(rows: Iterable[RowMapping]) -> list[Metric]:
    """Return the gauges of every stage, 0 for stages without jobs, and the backlog of every queue."""
    rows_by_stage = {row["stage"]: row for row in rows}
    families = []
    for name, help_text in _STAGE_GAUGES.items():
        family = GaugeMetricFamily(f"loci_jobs_{name}", help_text, labels=["stage"])
        for stage in stages.STAGES:
            value = rows_by_stage[stage][name] if stage in rows_by_stage else 0
            family.add_metric([stage], float(value))
        families.append(family)
    return [*families, _queue_backlog(rows_by_stage)]


def pause_metrics(pauses: Iterable[Pause]) -> Metric:
    """Return 1 for every stage that is paused, by the reason."""
    help_text = "Stages that wait because their model refuses every request, by reason."
    family = GaugeMetricFamily("loci_stage_paused", help_text, labels=["stage", "reason_code"])
    for stage, reason_code in sorted({(pause.stage, pause.reason_code) for pause in pauses}):
        family.add_metric([stage, reason_code], 1)
    return family


def judge_metric(report: JudgeReport | None) -> Metric:
    """Return whether the judge is trusted, 1 or 0; without a judge there is no sample."""
    help_text = "Whether verdicts of the judge decide what is stored."
    family = GaugeMetricFamily("loci_judge_trusted", help_text, labels=[])
    if report is not None:
        family.add_metric([], float(report.state is CalibrationState.TRUSTED))
    return family


def _queue_backlog(rows_by_stage: Mapping[str, RowMapping]) -> Metric:
    help_text = "Jobs of a queue that are due or running. Autoscalers use it to set the number of workers."
    family = GaugeMetricFamily("loci_queue_backlog_jobs", help_text, labels=["queue"])
    counts: Counter[str] = Counter()
    for name, stage in stages.STAGES.items():
        counts[stages.queue_of(stage.task)] += rows_by_stage[name]["backlog"] if name in rows_by_stage else 0
    for queue, job_count in sorted(counts.items()):
        family.add_metric([queue], job_count)
    return family


def counter_metrics(rows: Sequence[RowMapping], alert_ratio: float) -> list[Metric]:
    """Return the fleet counters as metrics. A budget used by `alert_ratio` (0 to 1) or more is an alert."""
    families = {name: _new_family(name) for name in FLEET_COUNTERS}
    for row in rows:
        name = row["name"]
        if name in families:
            values = row["labels"].split(":", len(FLEET_COUNTERS[name].labels) - 1)
            families[name].add_metric(values, float(row["value"]))
    alerts = _budget_alerts(families[budget_queries.USED_RATIO_METRIC], alert_ratio)
    return [*families.values(), alerts, _time_to_searchable(rows)]


def _new_family(name: str) -> CounterMetricFamily | GaugeMetricFamily:
    spec = FLEET_COUNTERS[name]
    return spec.metric_type(f"loci_{name}", spec.help, labels=spec.labels)


def _budget_alerts(ratios: Metric, alert_ratio: float) -> Metric:
    help_text = "Budgets whose window is used to the ratio of LOCI_BUDGET_ALERT or more."
    alerting_samples = [sample for sample in ratios.samples if sample.value >= alert_ratio]
    return GaugeMetricFamily("loci_budget_alerts", help_text, value=len(alerting_samples))


def _time_to_searchable(rows: Iterable[RowMapping]) -> Metric:
    help_text = "Seconds from a write's commit until search finds it, by keyword and by vector."
    family = HistogramMetricFamily(f"loci_{fleet_counters.TIME_TO_SEARCHABLE}", help_text, labels=["channel"])
    totals = {(row["name"], row["labels"]): float(row["value"]) for row in rows}
    for channel in ("keyword", "vector"):
        cumulative, buckets = 0.0, []
        for bound in (*fleet_counters.BOUNDS, float("inf")):
            cumulative += totals.get((fleet_counters.TIME_TO_SEARCHABLE, f"{channel}:{bound}"), 0.0)
            buckets.append(("+Inf" if bound == float("inf") else str(bound), cumulative))
        family.add_metric(
            [channel], buckets, totals.get((fleet_counters.TIME_TO_SEARCHABLE_SUM, channel), 0.0)
        )
    return family
