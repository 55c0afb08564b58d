"""Print what `loci doctor` says of the judge: whether it is trusted, why not, and its shares by language."""

from rich.console import Console

from shared.verification import calibration
from shared.verification.judge_report import JudgeReport
from shared.verification.stored_calibration import CalibrationState, Measured

_TITLES = {
    CalibrationState.MEASURING: "is not trusted yet",
    CalibrationState.TRUSTED: "is trusted",
    CalibrationState.NOT_TRUSTED: "is not trusted: its verdicts decide nothing",
}


def print_report(report: JudgeReport | None) -> None:
    """Print a line on the judge, then one for each limit that it misses, and one on languages.

    Print nothing without a judge.
    """
    console = Console(highlight=False, soft_wrap=True)
    if report is None:
        return
    console.print(f"judge {report.model} at {report.host} {_TITLES[report.state]}{_progress(report)}")
    if report.measured is not None:
        _print_measured(console, report.measured)


def _progress(report: JudgeReport) -> str:
    if report.measured is None or report.answer_count:
        return f"; it has answered {report.answer_count} of {len(calibration.read())} labelled questions"
    return ""


def _print_measured(console: Console, measured: Measured) -> None:
    for reason in measured.trust.reasons_against:
        console.print(f"- {reason}")
    languages = (
        f"{name} {share.right} of {share.count}" for name, share in measured.trust.by_language.items()
    )
    console.print(
        f"measured {measured.calibrated_at:%Y-%m-%d %H:%M} UTC, right by language: {', '.join(languages)}"
    )
