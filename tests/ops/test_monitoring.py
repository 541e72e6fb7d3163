"""Rules, dashboard and page name metrics that the daemon has, and each alert is fired once."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry, ProcessCollector

from dssd.metrics.table import TABLE, SeriesKind
from support.page_blocks import blocks
from support.prerequisites import PROMTOOL, leave_out

REPO = Path(__file__).resolve().parents[2]
RULES = REPO / "ops/prometheus/dss-rules.yml"
RULES_TEST = REPO / "ops/prometheus/dss-rules-test.yml"
DASHBOARD = REPO / "ops/grafana/dss.json"
PAGE = REPO / "docs/monitoring.md"

NAME = re.compile(r"\b(?:dss|process)_\w+")


def shown() -> set[str]:
    """Every name of a series that a scrape may have."""
    own = {spec.name for spec in TABLE}
    buckets = {f"{spec.name}_bucket" for spec in TABLE if spec.kind is SeriesKind.HISTOGRAM}
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    process = {sample.name for family in registry.collect() for sample in family.samples}
    return own | buckets | process


def rules() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return list(group["rules"])


def expressions_of_panels() -> list[str]:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


def test_every_metric_in_a_rule_is_shown_by_the_daemon() -> None:
    assert {name for rule in rules() for name in NAME.findall(rule["expr"])} <= shown()


def test_every_series_in_a_test_of_rules_is_shown_by_the_daemon() -> None:
    assert set(NAME.findall(RULES_TEST.read_text())) <= shown()


def test_every_metric_in_the_dashboard_is_shown_by_the_daemon() -> None:
    assert {name for each in expressions_of_panels() for name in NAME.findall(each)} <= shown()


def test_every_metric_of_the_table_is_in_the_dashboard() -> None:
    drawn = {name for each in expressions_of_panels() for name in NAME.findall(each)}
    named = {f"{s.name}_bucket" if s.kind is SeriesKind.HISTOGRAM else s.name for s in TABLE}
    assert named - drawn == set()


def test_every_metric_on_the_page_is_shown_by_the_daemon() -> None:
    named = re.findall(r"`(dss_\w+)`", PAGE.read_text())
    assert named
    assert set(named) <= shown()


def test_the_page_explains_every_alert_with_its_severity() -> None:
    explained = dict(re.findall(r"^\| `(Dss\w+)` \| (\w+) \|", PAGE.read_text(), re.MULTILINE))
    assert explained == {rule["alert"]: rule["labels"]["severity"] for rule in rules()}


def test_the_configuration_on_the_page_has_the_rules_and_the_name_that_an_alert_looks_for() -> None:
    [block] = blocks("docs/monitoring.md", "yaml")
    configuration = yaml.safe_load(block.text)
    assert configuration["rule_files"] == [RULES.name]
    [scraped] = configuration["scrape_configs"]
    [down] = [rule for rule in rules() if rule["alert"] == "DssDown"]
    assert f'job="{scraped["job_name"]}"' in down["expr"]


def test_every_alert_is_fired_by_a_test_and_quiet_in_another() -> None:
    tests = {each["name"] for each in yaml.safe_load(RULES_TEST.read_text())["tests"]}
    alerts = [rule["alert"] for rule in rules()]
    wanted = {f"{alert} {end}" for alert in alerts for end in ("fires", "is quiet")}
    assert wanted - tests == set()


@pytest.mark.parametrize("check", [["check", "rules", RULES], ["test", "rules", RULES_TEST]])
def test_prometheus_itself_takes_the_rules_and_fires_each(check: list[str | Path]) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        leave_out(PROMTOOL, "there is no promtool (Debian's package prometheus)")
        return
    done = subprocess.run([promtool, *check], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
